//go:build !race

package spec_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// stages are moments in zones where something happens: gaps, second passes, midnights, months and years that end.
var stages = []struct{ zone, at string }{
	{"UTC", "2028-02-29T00:00:00Z"},
	{"Asia/Kathmandu", "2026-12-31T18:15:00Z"},
	{"Europe/Berlin", "2027-03-28T01:00:00Z"},
	{"Europe/Berlin", "2027-10-31T01:00:00Z"},
	{"Europe/Berlin", "2096-12-31T00:00:00Z"},
	{"Europe/Dublin", "2027-10-31T01:00:00Z"},
	{"America/New_York", "2027-11-07T06:00:00Z"},
	{"America/Havana", "2022-03-13T05:00:00Z"},
	{"America/Nuuk", "2024-03-31T01:00:00Z"},
	{"America/St_Johns", "2010-11-07T02:31:00Z"},
	{"Australia/Lord_Howe", "2026-10-03T15:30:00Z"},
	{"Australia/Lord_Howe", "2027-04-03T15:00:00Z"},
	{"Antarctica/Casey", "2020-10-03T16:01:00Z"},
	{"Antarctica/Troll", "2027-03-28T01:00:00Z"},
	{"Asia/Beirut", "2022-03-26T22:00:00Z"},
	{"Africa/Casablanca", "2024-03-10T02:00:00Z"},
	{"Africa/Monrovia", "1972-01-07T00:44:30Z"},
	{"Pacific/Apia", "2011-12-30T10:00:00Z"},
}

// TestAnySpecKeepsItsLaws draws definitions and asks at any moment. The oracle's set has the union of the lines, each
// instant once, the excludes and the bounds, so agreement with it proves them.
func TestAnySpecKeepsItsLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, middle := drawDefinition(t)
		zone := zoneOf(t, d.Zone)
		w := newWalk(zone, middle-around, middle+around)
		asked := newOracle(t, d)
		want := asked.ticks(w)
		s, err := spec.Parse(d)
		if err != nil {
			if len(want) > 0 {
				t.Fatalf("%q is refused: %v; the oracle knows %q", d.Lines, err, text(zone, want))
			}
			t.Skip("never matches")
		}
		compare(t, s, w, asked)

		canonical := s.Definition()
		again, err := spec.Parse(canonical)
		mustOK(t, err)
		if got := again.Definition(); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", canonical) {
			t.Errorf("%q: the canonical form of %+v is %+v", d.Lines, canonical, got)
		}
		compare(t, again, w, asked)

		// From any moment, parts of a second included, Next and Prev are the neighbours in the set.
		moment := rapid.Int64Range(w.from*1e9, (w.to-1)*1e9).Draw(t, "moment")
		if rapid.Bool().Draw(t, "whole seconds") {
			moment -= moment % 1e9
		}
		at := time.Unix(0, moment)
		next, previous := s.Next(at), s.Prev(at)
		later := slices.IndexFunc(want, func(tick int64) bool { return tick*1e9 > moment })
		if later >= 0 && next.Unix() != want[later] {
			t.Errorf("%q: Next of %v is %v, want %q", d.Lines, at, next, text(zone, want[later:later+1]))
		}
		earlier := len(want) - 1
		for earlier >= 0 && want[earlier]*1e9 >= moment {
			earlier--
		}
		if earlier >= 0 && previous.Unix() != want[earlier] {
			t.Errorf("%q: Prev of %v is %v, want %q", d.Lines, at, previous, text(zone, want[earlier:earlier+1]))
		}
	})
}

// TestNextAndPrevUndoEachOther asks specs at any moment from before the first to after the last tick.
func TestNextAndPrevUndoEachOther(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, _ := drawDefinition(t)
		s, err := spec.Parse(d)
		if err != nil {
			t.Skip("never matches")
		}
		moments := rapid.SliceOfN(rapid.Int64Range(-1e9, 2.6e11), 2, 2).Draw(t, "moments")
		slices.Sort(moments)
		var last time.Time
		for _, second := range moments {
			at := time.Unix(second, 0)
			next, previous := s.Next(at), s.Prev(at)
			if next.Before(last) && !next.IsZero() {
				t.Errorf("%q: Next of %v is %v, and of an earlier moment %v", d.Lines, at, next, last)
			}
			last = next
			if !next.IsZero() {
				if !next.After(at) {
					t.Errorf("%q: Next of %v is %v", d.Lines, at, next)
				}
				if back := s.Prev(next); back.After(at) || s.Next(next.Add(-1)) != next || s.Prev(next.Add(1)) != next {
					t.Errorf("%q: Prev does not undo Next of %v: %v", d.Lines, next, back)
				} else if !back.IsZero() && !s.Next(back).Equal(next) {
					t.Errorf("%q: %v is before %v, and after it %v", d.Lines, back, next, s.Next(back))
				}
			}
			if !previous.IsZero() {
				if !previous.Before(at) {
					t.Errorf("%q: Prev of %v is %v", d.Lines, at, previous)
				}
				if on := s.Next(previous); !on.IsZero() && on.Before(at) {
					t.Errorf("%q: Prev of %v is %v, but %v is between", d.Lines, at, previous, on)
				}
			}
		}
	})
}

// drawDefinition draws a well-formed definition, and the moment that its ticks are asked around.
func drawDefinition(t *rapid.T) (d delaytask.Spec, middle int64) {
	stage := rapid.SampledFrom(stages).Draw(t, "stage")
	at, err := time.Parse(time.RFC3339, stage.at)
	mustOK(t, err)
	middle = at.Unix()
	near := rapid.Int64Range(middle-around, middle+around)
	d.Zone, d.DST = stage.zone, rapid.SampledFrom(rules).Draw(t, "rule")
	for range rapid.IntRange(1, 3).Draw(t, "lines") {
		switch rapid.SampledFrom([]string{"cron", "cron", "cron", "every", "at"}).Draw(t, "kind") {
		case "cron":
			d.Lines = append(d.Lines, drawCron(t))
		case "every":
			every := rapid.SampledFrom([]int{60, 61, 90, 900, 5400, 86400, 100_000}).Draw(t, "interval")
			d.Lines = append(d.Lines, fmt.Sprintf("@every %ds/%ds", every, rapid.IntRange(0, every-1).Draw(t, "phase")))
		case "at":
			local := near.Draw(t, "local time")
			layout := rapid.SampledFrom([]string{"2006-01-02T15:04", "2006-01-02T15:04:05",
				time.RFC3339}).Draw(t, "layout")
			d.Lines = append(d.Lines, "@at "+time.Unix(local+offset(zoneOf(t, d.Zone), local), 0).UTC().Format(layout))
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "excludes") {
		line := "!" + drawCron(t)
		if rapid.Bool().Draw(t, "date") {
			line = time.Unix(near.Draw(t, "date"), 0).UTC().Format("!2006-01-02")
		}
		d.Lines = append(d.Lines, line)
	}
	if rapid.IntRange(0, 3).Draw(t, "bounds") == 0 {
		bounds := []int64{near.Draw(t, "start"), near.Draw(t, "end")}
		slices.Sort(bounds)
		d.Start, d.End = time.Unix(bounds[0], 0).UTC(), time.Unix(bounds[1], 5e8).UTC()
	}
	return d, middle
}

// drawCron prefers stars, and hours of the night, so that lines match around a change.
func drawCron(t *rapid.T) string {
	star := []string{"*"}
	items := func(low, high int) string {
		a, b := rapid.IntRange(low, high).Draw(t, "a"), rapid.IntRange(low, high).Draw(t, "b")
		n := rapid.IntRange(1, 9).Draw(t, "step")
		return rapid.SampledFrom([]string{
			"*", strconv.Itoa(a), fmt.Sprintf("%d,%d", a, b), fmt.Sprintf("%d-%d", min(a, b), max(a, b)),
			fmt.Sprintf("*/%d", n), fmt.Sprintf("%d/%d", a, n), fmt.Sprintf("%d-%d/%d,%d", min(a, b), max(a, b), n, b),
		}).Draw(t, "items")
	}
	days := slices.Concat(star, star, []string{"?", "*/2", "L", "15,L", "1-7", "28-31", "*,13", "30"})
	weekdays := slices.Concat(star, star, []string{"?", "7", "FRI-SUN", "MON-FRI", "sat,SUN", "*/2", "5-7", "0-6"})
	months := slices.Concat(star, star, []string{"JAN,MAR,DEC", "*/3", "9-12", "apr-oct"})
	hours := []string{"*", "0", "2", "1-3", "23,0,1", "0-22", "0-23", "*/3", items(0, 23)}
	fields := []string{
		items(0, 59), rapid.SampledFrom(hours).Draw(t, "hour"), rapid.SampledFrom(days).Draw(t, "day"),
		rapid.SampledFrom(months).Draw(t, "month"), rapid.SampledFrom(weekdays).Draw(t, "weekday"),
	}
	if rapid.IntRange(0, 4).Draw(t, "seconds") == 0 {
		second := rapid.SampledFrom([]string{"0", "30", "*/20", "5-9"}).Draw(t, "second")
		return second + " " + strings.Join(fields, " ")
	}
	return strings.Join(fields, " ")
}

// TestASearchGivesUp meets ticks that move by a second each day, through two hours that are left out.
func TestASearchGivesUp(t *testing.T) {
	s, err := spec.Parse(delaytask.Spec{Lines: []string{"@every 86399s", "! * 21-22 * * *"}})
	if err != nil {
		t.Fatal(err)
	}
	last := s.Prev(time.Unix(0, 0).AddDate(11, 0, 0))
	if last.Hour() != 23 {
		t.Errorf("the last tick before the gap: %v", last)
	}
	if next := s.Next(last.Add(time.Hour)); !next.IsZero() {
		t.Errorf("a tick after a search of 20 years: %v", next)
	}
	if prev := s.Prev(last.AddDate(19, 0, 0)); !prev.IsZero() {
		t.Errorf("a tick before a search of 19 years: %v", prev)
	}
}
