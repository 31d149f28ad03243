package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

func TestWrongFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-server", "sqlite"}, {"-for", "0s"}, {"-workers", "0"}, {"-rate", "1"}, {"-patience", "-1s"}, {"-lasts", "-1s"}, {"quick"}, {"judge"}, {"-fast"}, {"-only", "rain"},
		{"-histories", "0"}, {"-server", "mysql", "-ahead", "5s"},
		{"-only", "member killed"}, {"-server", "group", "-only", "kill database"}, {"-server", "galera", "-disk", "600"},
	} {
		var stderr bytes.Buffer
		if _, err := parse(args, &stderr); err == nil || stderr.Len() == 0 {
			t.Errorf("%q: error %v, and %q on stderr; want it refused with a reason", args, err, stderr.String())
		}
	}
}

func TestFlagsSayWhatToRun(t *testing.T) {
	t.Parallel()
	var stderr bytes.Buffer
	opts, err := parse([]string{"-for", "90s", "-seed", "7", "-server", "mysql", "-only", "full disk,kill worker"}, &stderr)
	if err != nil || opts.span != 90*time.Second || opts.seed != 7 || opts.server != "mysql" || opts.rate != 150 {
		t.Errorf("got %+v, %v", opts, err)
	}
	if kinds := (&stage{opts: opts}).kinds(); len(kinds) != 2 {
		t.Errorf("of the faults %v", kinds)
	}
	if opts, err = parse([]string{"-only", "kill database,kill worker", "-lasts", "1m"}, &stderr); err != nil {
		t.Errorf("got %v", err)
	}
	for _, k := range (&stage{opts: opts}).kinds() {
		if want := map[string]time.Duration{"kill database": time.Minute}[k.Name]; k.Lasts != [2]time.Duration{want, want} {
			t.Errorf("%s lasts %v, want %v", k.Name, k.Lasts, want)
		}
	}
	if opts, err = parse([]string{"-server", "galera", "-only", "member killed,kill worker"}, &stderr); err != nil {
		t.Errorf("got %v", err)
	}
	if kinds := (&stage{opts: opts}).kinds(); len(kinds) != 2 {
		t.Errorf("of the faults on a cluster %v", kinds)
	}
	if opts, err = parse([]string{"-server", "primary"}, &stderr); err != nil || !opts.single || opts.kind() != primary || rules(opts).Behind {
		t.Errorf("got %+v, %v", opts, err)
	}
	if opts, err = parse([]string{"-server", "group"}, &stderr); err != nil || opts.single || opts.kind() != "group" || !rules(opts).Behind || opts.rate != 15 {
		t.Errorf("got %+v, %v", opts, err)
	}
}

func TestOlderProgramIsOfACommitThatIsThere(t *testing.T) {
	t.Parallel()
	s := &stage{opts: options{old: "no-such-commit"}, dir: t.TempDir()}
	if err := s.setOld(t.Context()); err == nil || !strings.Contains(err.Error(), "no-such-commit") {
		t.Errorf("got %v, want the commit's name", err)
	}
	s = &stage{dir: t.TempDir()}
	if err := s.setOld(t.Context()); err != nil || s.old != (older{}) {
		t.Errorf("got %+v, %v, where nobody asked for one", s.old, err)
	}
}

func TestEveryEventHasItsMomentOnBothClocks(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for _, ahead := range []time.Duration{5 * time.Second, -7 * time.Second} {
		said, noted := []journal.Event{{At: noon}}, []journal.Event{{At: noon.Add(ahead)}}
		onServersClock(ahead, said, noted)
		if said[0] != noted[0] || !said[0].At.Equal(noon) || !said[0].Clock.Equal(noon.Add(ahead)) {
			t.Errorf("%v: the same moment is %+v to a process and %+v to the database", ahead, said[0], noted[0])
		}
	}
	said := []journal.Event{{At: noon}}
	if onServersClock(0, said); !said[0].Clock.IsZero() {
		t.Errorf("one clock was made two: %+v", said[0])
	}
}
