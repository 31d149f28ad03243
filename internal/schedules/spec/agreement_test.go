package spec_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

var full = flag.Bool("spec.full", false, "compare all zones and changes with the oracle, not a random part")

// around is how far before and after a change the ticks are compared.
const around = 30 * 60 * 60

var rules = []delaytask.DST{delaytask.DSTOnce, delaytask.DSTSkip, delaytask.DSTBoth, delaytask.DSTLiteral}

// expressions stand for what schedules name: times in gaps and folds, at midnight, at each hour, days, and excludes.
var expressions = [][]string{
	{"30 2 * * *"},
	{"0 0 * * *"},
	{"*/20 0-4 * * *"},
	{"15 * * * *"},
	{"0 9 * * *"},
	{"45 1 * * *"},
	{"1 0,1,23 * * *"},
	{"*/7 1-3,23 * * MON-FRI"},
	{"0 0 * * 0"},
	{"30 23 15,L * *"},
	{"59 0-22 */2 * SAT-SUN"},
	{"*/30 59 23,0-2 * * *"},
	{"*/15 1-3 * * *", "0 3 * * *", "!30-59 2 * * *", "!0 1 * * *"},
	{"@every 7h/23m", "30 1,2 1-7 * FRI", "!* * * * SUN"},
}

// history is the same for zones with the same changes.
func history(zone *time.Location) string {
	var text strings.Builder
	for _, at := range changes(zone) {
		fmt.Fprintln(&text, at, offset(zone, at-1), offset(zone, at))
	}
	return text.String()
}

func zones(t *testing.T) (names []string) {
	const dir = "/usr/share/zoneinfo"
	mustOK(t, fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil && os.Getenv("DELAYTASK_REQUIRE_DB") != "" {
			t.Fatalf("%s has no time zones: %v; install tzdata", dir, err)
		}
		if err != nil {
			t.Skipf("%s has no time zones: %v", dir, err)
		}
		switch path {
		case "posix", "right":
			return fs.SkipDir
		case "localtime", "posixrules":
			return nil // settings of the machine
		}
		if _, err := time.LoadLocation(path); err == nil && !entry.IsDir() {
			names = append(names, path)
		}
		return nil
	}))
	return names
}

// changes are the instants whose offset differs from the offset a second before.
func changes(zone *time.Location) (found []int64) {
	const stride = 6 * 60 * 60
	first, end := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2038, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for at := first; at < end; at += stride {
		before, after := at, at+stride
		if offset(zone, before) == offset(zone, after) {
			continue
		}
		for after-before > 1 {
			if middle := (before + after) / 2; offset(zone, middle) == offset(zone, at) {
				before = middle
			} else {
				after = middle
			}
		}
		found = append(found, after)
	}
	return found
}

// compare fails unless a spec has the oracle's ticks within a walk, forwards and backwards.
func compare(t rapid.TB, s *spec.Spec, w *walk, asked *oracle) {
	t.Helper()
	want := asked.ticks(w)
	for direction, got := range map[string][]int64{"Next": forwards(t, s, w), "Prev": backwards(t, s, w)} {
		if slices.Equal(got, want) {
			continue
		}
		missing, added := without(want, got), without(got, want)
		t.Errorf("%q in %q by %v, start %v, end %v: %s from %v misses %q, adds %q", asked.definition.Lines,
			asked.zone, asked.definition.DST, asked.definition.Start, asked.definition.End, direction,
			time.Unix(w.from, 0).UTC(), text(asked.zone, missing), text(asked.zone, added))
	}
}

func without(all, some []int64) (rest []int64) {
	for _, at := range all {
		if _, found := slices.BinarySearch(some, at); !found {
			rest = append(rest, at)
		}
	}
	return rest
}

func forwards(t rapid.TB, s *spec.Spec, w *walk) (ticks []int64) {
	at := time.Unix(w.from-1, 0)
	for {
		next := s.Next(at)
		if next.IsZero() || next.Unix() >= w.to {
			return ticks
		}
		if !next.After(at) || next.Nanosecond() != 0 {
			t.Fatalf("%q: the tick after %v is %v", s.Definition().Lines, at, next)
		}
		ticks, at = append(ticks, next.Unix()), next
	}
}

func backwards(t rapid.TB, s *spec.Spec, w *walk) (ticks []int64) {
	at := time.Unix(w.to, 0)
	for {
		previous := s.Prev(at)
		if previous.IsZero() || previous.Unix() < w.from {
			slices.Reverse(ticks)
			return ticks
		}
		if !previous.Before(at) || previous.Nanosecond() != 0 {
			t.Fatalf("%q: the tick before %v is %v", s.Definition().Lines, at, previous)
		}
		ticks, at = append(ticks, previous.Unix()), previous
	}
}
