package main

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/test/system/chaos/role"
)

func TestWrongFlagsAreRefused(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-server", "sqlite"}, {"-for", "0s"}, {"-workers", "0"}, {"-rate", "1"}, {"-patience", "-1s"},
		{"-lasts", "-1s"}, {"quick"}, {"judge"}, {"-fast"}, {"-only", "rain"},
		{"-histories", "0"}, {"-server", "mysql", "-ahead", "5s"}, {"-server", "mysql", "-slew", "0.01"},
		{"-slew", "-0.2"}, {"-only", "member killed"},
		{"-server", "group", "-only", "kill database"}, {"-server", "galera", "-disk", "600"},
	} {
		var stderr bytes.Buffer
		if _, err := parse(args, &stderr); err == nil || stderr.Len() == 0 {
			t.Errorf("%q: error %v, and %q on stderr; want it refused with a reason", args, err, stderr.String())
		}
	}
}

func TestFlagsSayWhatToRun(t *testing.T) {
	t.Parallel()
	parsed := func(flags ...string) options {
		t.Helper()
		opts, err := parse(flags, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		return opts
	}
	opts := parsed("-for", "90s", "-seed", "7", "-server", "mysql", "-only", "full disk,kill worker")
	if opts.span != 90*time.Second || opts.seed != 7 || opts.server != "mysql" || opts.rate != 150 {
		t.Errorf("got %+v", opts)
	}
	if kinds := (&stage{opts: opts}).kinds(); len(kinds) != 2 {
		t.Errorf("of the faults %v", kinds)
	}
	for _, k := range (&stage{opts: parsed("-only", "kill database,kill worker", "-lasts", "1m")}).kinds() {
		want := map[string]time.Duration{"kill database": time.Minute}[k.Name]
		if k.Lasts != [2]time.Duration{want, want} {
			t.Errorf("%s lasts %v, want %v", k.Name, k.Lasts, want)
		}
	}
	kinds := (&stage{opts: parsed("-server", "galera", "-only", "member killed,kill worker")}).kinds()
	if len(kinds) != 2 {
		t.Errorf("of the faults on a cluster %v", kinds)
	}
	if opts = parsed("-server", "primary"); !opts.single || opts.kind() != primary || rules(opts).Behind {
		t.Errorf("got %+v", opts)
	}
	opts = parsed("-server", "group")
	if opts.single || opts.kind() != "group" || opts.rate != 15 || !rules(opts).Behind {
		t.Errorf("got %+v", opts)
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
		t.Errorf("got %+v, %v, where none was asked for", s.old, err)
	}
}

func TestEveryEventHasItsMomentOnBothClocks(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)
	for ahead, clock := range map[time.Duration]role.Clock{
		5 * time.Second:          {Ahead: 5 * time.Second},
		-7 * time.Second:         {Ahead: -7 * time.Second},
		-1200 * time.Millisecond: {Slew: -.02, From: noon.Add(-time.Minute)},
		8 * time.Second:          {Ahead: 2 * time.Second, Slew: .1, From: noon.Add(-time.Minute)},
	} {
		said, noted := []journal.Event{{At: noon}}, []journal.Event{{At: noon.Add(ahead)}}
		onServersClock(clock, said, noted)
		if said[0] != noted[0] || !said[0].At.Equal(noon) || !said[0].Clock.Equal(noon.Add(ahead)) {
			t.Errorf("%v: the same moment is %+v to a process and %+v to the database", ahead, said[0], noted[0])
		}
	}
	said := []journal.Event{{At: noon, Clock: noon.Add(time.Second)}}
	if onServersClock(role.Clock{Slew: -.1, From: noon}, said); !said[0].Clock.Equal(noon.Add(900 * time.Millisecond)) {
		t.Errorf("a process in doubt may have gone by %v", said[0].Clock)
	}
	said = []journal.Event{{At: noon}}
	if onServersClock(role.Clock{}, said); !said[0].Clock.IsZero() {
		t.Errorf("one clock was made two: %+v", said[0])
	}
}
