package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/journal"
	"github.com/delaytask/delaytask/internal/judge"
)

func TestJournalsAreJudged(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	rules := journal.Event{At: noon, Node: "db", Kind: journal.Rules, Detail: judge.Encode(judge.Rules{})}
	call := journal.Event{At: noon, Node: "n", Kind: journal.CallSave, Op: "1", Tag: "t", Body: "b"}
	insert := journal.Event{At: noon.Add(1), Node: "db", Kind: journal.Write, ID: 7, Tag: "t", Body: "b", Status: "pending"}
	accepted := journal.Event{At: noon.Add(2), Node: "n", Kind: journal.ReturnSave, Op: "1", ID: 7}
	lost := accepted
	lost.ID = 8
	seen := journal.Event{At: noon.Add(1), Node: "n", Kind: journal.StoreRead, Op: "2", ID: 7}
	one := journal.Event{At: noon.Add(1), Node: "n", Kind: journal.StoreReturn, Op: "2", ID: 7, Status: "executing", Version: 1}
	again, two := seen, one
	again.Op, two.Op, two.Version = "3", "3", 0
	for name, c := range map[string]struct {
		processes, database []journal.Event
		says                string
		broken, wrong       bool
	}{
		"good":     {[]journal.Event{call, accepted}, []journal.Event{rules, insert}, "0 violations", false, false},
		"bad":      {[]journal.Event{call, lost}, []journal.Event{rules, insert}, "promise 1, task 8", true, false},
		"back":     {[]journal.Event{call, seen, one, again, two, accepted}, []journal.Event{rules, insert}, "task 7: no order", true, false},
		"no rules": {[]journal.Event{call}, nil, "", false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			broken, err := run(&out, []string{write(t, c.processes), write(t, c.database)})
			if broken != c.broken || (err != nil) != c.wrong || !strings.Contains(out.String(), c.says) {
				t.Errorf("got %t, %v: %s", broken, err, out.String())
			}
		})
	}
	if _, err := run(&bytes.Buffer{}, nil); err == nil {
		t.Error("no file was judged")
	}
}

func write(t *testing.T, events []journal.Event) (path string) {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "journal"))
	if err != nil {
		t.Fatal(err)
	}
	if err := journal.WriteTo(file, events); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}
