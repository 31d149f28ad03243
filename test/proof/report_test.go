package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestOnlyABrokenPromiseCounts(t *testing.T) {
	tr := &trial{proof: "punctual"}
	tr.promise("kept", "0", "0", true)
	tr.aim("slow", "9 ms", "3 ms", false)
	tr.add("figure", "7", "", noted)
	r := report{Server: "MySQL 9", Results: tr.results}
	if !r.kept() {
		t.Error("an aim that is missed breaks no promise")
	}
	tr.promise("lost", "1", "0", false)
	if r.Results = tr.results; r.kept() {
		t.Error("a broken promise is not seen")
	}
	var out bytes.Buffer
	if err := r.write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"MySQL 9", "BROKEN", "missed", "kept"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table does not show %q:\n%s", want, out.String())
		}
	}
}

func TestWrongFlagsAreRefused(t *testing.T) {
	for _, args := range [][]string{{"-db", "oracle"}, {"-run", "speed"}, {"-quick", "crash"}, {"-fast"}} {
		var stderr bytes.Buffer
		if _, err := parse(args, &stderr); err == nil || stderr.Len() == 0 {
			t.Errorf("%q: error %v, and %q on stderr; want it refused with a reason", args, err, stderr.String())
		}
	}
}

func TestFlagsChooseProofsAndDatabases(t *testing.T) {
	var stderr bytes.Buffer
	opts, err := parse([]string{"-db", "mysql,sqlite", "-run", "idle,crash"}, &stderr)
	if err != nil || len(opts.kinds) != 2 || len(opts.proofs) != 2 || opts.proofs[0].name != "idle" {
		t.Errorf("got %+v, error %v", opts, err)
	}
	if opts, err = parse(nil, &stderr); err != nil || len(opts.kinds) != 0 || len(opts.proofs) != len(proofs) {
		t.Errorf("without flags: got %+v, error %v; want all", opts, err)
	}
}
