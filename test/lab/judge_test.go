package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/internal/testkit/judge"
)

func TestJournalsAreJudged(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	rules := journal.Event{At: noon, Node: "db", Kind: journal.Rules, Detail: judge.Encode(judge.Rules{})}
	call := journal.Event{At: noon, Node: "n", Kind: journal.CallSave, Op: "1", Tag: "t", Body: "b"}
	insert := journal.Event{
		At: noon.Add(1), Node: "db", Kind: journal.Write, ID: 7, Tag: "t", Body: "b", Status: "pending",
	}
	accepted := journal.Event{At: noon.Add(2), Node: "n", Kind: journal.ReturnSave, Op: "1", ID: 7}
	lost := accepted
	lost.ID = 8
	seen := journal.Event{At: noon.Add(1), Node: "n", Kind: journal.StoreRead, Op: "2", ID: 7}
	one := journal.Event{
		At: noon.Add(1), Node: "n", Kind: journal.StoreReturn, Op: "2", ID: 7, Status: "executing", Version: 1,
	}
	again, two := seen, one
	again.Op, two.Op, two.Version = "3", "3", 0
	for name, c := range map[string]struct {
		processes, database []journal.Event
		says                string
		err                 error
	}{
		"good": {[]journal.Event{call, accepted}, []journal.Event{rules, insert}, "0 violations", nil},
		"bad":  {[]journal.Event{call, lost}, []journal.Event{rules, insert}, "invariant 1, task 8", errViolated},
		"back": {
			[]journal.Event{call, seen, one, again, two, accepted}, []journal.Event{rules, insert},
			"task 7: its history is not linearizable", errViolated,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			err := judgeAgain([]string{journalOf(t, c.processes), journalOf(t, c.database)}, &out)
			if !errors.Is(err, c.err) || !strings.Contains(out.String(), c.says) {
				t.Errorf("got %v: %s", err, out.String())
			}
		})
	}
	err := judgeAgain([]string{journalOf(t, []journal.Event{call})}, &bytes.Buffer{})
	if err == nil || errors.Is(err, errViolated) {
		t.Errorf("of a journal without rules: %v", err)
	}
}

func journalOf(t *testing.T, events []journal.Event) (path string) {
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
