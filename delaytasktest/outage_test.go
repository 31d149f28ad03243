package delaytasktest_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
	"github.com/delaytask/delaytask/processor"
)

// Processes live from saved to down, and from back to end.
var (
	saved = time.Date(2027, 3, 21, 22, 0, 0, 0, time.UTC)
	down  = saved.Add(2*time.Hour + 14*time.Minute + 55*time.Second)
	back  = down.Add(7 * 24 * time.Hour)
	end   = back.Add(100 * time.Minute)
)

// away is a schedule that meets the outage, and what the test knows of it.
type away struct {
	name    string
	when    delaytask.Spec
	ticks   []time.Time // up to end, without those that are never decided
	overlap delaytask.Overlap
	missed  delaytask.Missed
	within  time.Duration
	opts    []delaytask.Option
	open    string        // what its last run waits for when the processes die; "": it has ended
	most    int           // runs after the outage; 0: any number
	fails   bool          // these runs do
	jitter  time.Duration // from a tick to when it is due
}

// dueBy returns how many ticks are due by a moment.
func (a *away) dueBy(moment time.Time) int {
	n := slices.IndexFunc(a.ticks, func(tick time.Time) bool { return tick.Add(a.jitter).After(moment) })
	return map[bool]int{true: len(a.ticks), false: n}[n < 0]
}

func line(tick, at time.Time, cause any, attempt, missed int) string {
	return fmt.Sprint(tick.Format(time.DateTime), " at ", at, " ", cause, " attempt ", attempt, " missed ", missed)
}

// outcome tells by docs/schedules.md which runs there are, in their order, and what becomes of each tick.
func (a *away) outcome() (runs []string, became map[time.Time]string) {
	became = map[time.Time]string{}
	lost, left := 0, -1
	run := func(tick, at time.Time, cause string, attempt int) {
		if left != 0 {
			runs = append(runs, line(tick, at, cause, attempt, lost))
			became[tick] = map[bool]string{false: "completed", true: "failed"}[a.fails && !at.Before(back)]
			lost, left = 0, left-1
		}
	}
	drop := func(why string, ticks []time.Time) {
		for _, tick := range ticks {
			became[tick] = why
		}
		lost += len(ticks)
	}
	late := func(tick time.Time, than time.Duration) bool { return back.Sub(tick)-a.jitter > than }
	n, m := a.dueBy(down), a.dueBy(back)
	for _, tick := range a.ticks[:n] {
		run(tick, tick.Add(a.jitter), "tick", 1)
	}
	left = cmp.Or(a.most, -1)
	due, beside := a.ticks[n:m], a.overlap == delaytask.OverlapAllow
	switch { // what was open is settled first, and a run that has not begun is taken back
	case a.open == "its tick":
	case a.open == "a retry" && beside && a.within > 0:
		became[a.ticks[n-1]] = "cancelled"
	case a.open != "" && beside:
		run(a.ticks[n-1], back, "tick", 2)
	case a.open != "": // no attempt begins after the next tick
		became[a.ticks[n-1]] = "failed"
	}
	last := len(due) - 1
	if a.missed == delaytask.MissedAll {
		last -= 999
	}
	for i, tick := range due {
		minute := late(tick, time.Minute)
		if i < last || a.within > 0 && late(tick, a.within) || a.missed == delaytask.MissedSkip && minute {
			drop("missed", due[i:i+1])
		} else {
			run(tick, back, map[bool]string{true: "late", false: "tick"}[minute], 1)
		}
	}
	for _, tick := range a.ticks[m:] {
		run(tick, tick.Add(a.jitter), "tick", 1)
	}
	return runs, became
}

// every returns the ticks of an interval, from one to another.
func every(d time.Duration, from, to time.Time) (ticks []time.Time) {
	for ; !from.After(to); from = from.Add(d) {
		ticks = append(ticks, from)
	}
	return ticks
}

// schedules are all policies beside all that may be open, and what else bears on ticks.
func schedules() (all []*away) {
	const hour, day = time.Hour, 24 * time.Hour
	once, skip, each := delaytask.MissedOnce, delaytask.MissedSkip, delaytask.MissedAll
	add := func(ticks []time.Time, line string, a away, opts ...delaytask.Option) {
		a.when.Lines = append([]string{line}, a.when.Lines...)
		a.ticks, a.opts = ticks, opts
		a.overlap, a.missed = cmp.Or(a.overlap, delaytask.OverlapSkip), cmp.Or(a.missed, once)
		all = append(all, &a)
	}
	overlaps := []delaytask.Overlap{
		delaytask.OverlapSkip, delaytask.OverlapQueueOne, delaytask.OverlapReplace, delaytask.OverlapAllow,
	}
	for minute, open := range map[time.Duration]string{45: "", 15: "its tick", 10: "a retry", 5: "an answer"} {
		ticks, line := every(hour, saved.Add(minute*time.Minute), end), fmt.Sprintf("%d * * * *", minute)
		for i := range 24 {
			a := away{open: open, overlap: overlaps[i%4], missed: []delaytask.Missed{once, skip, each}[i/4%3]}
			a.within = time.Duration(i/12) * 6 * hour
			a.name = fmt.Sprintf("%d/%s/%s/%v", minute, a.overlap, a.missed, a.within)
			add(ticks, line, a)
		}
	}
	const line = "30 14 * * * *" // its last tick before the processes are back is 25 s late
	ticks := every(hour, saved.Add(14*time.Minute+30*time.Second), end)
	without := func(drop func(time.Time) bool) []time.Time { return slices.DeleteFunc(slices.Clone(ticks), drop) }
	add(ticks, line, away{name: "skip", missed: skip})
	add(ticks, line, away{name: "within", within: 20 * time.Second})
	add(ticks, line, away{name: "beside", overlap: delaytask.OverlapAllow, missed: each}, delaytask.WithMaxOpen(2))
	add(without(down.Before), line, away{name: "paused"})
	add(ticks, line, away{name: "pauses", missed: each, fails: true, most: 2}, delaytask.WithPauseAfter(2))
	add(ticks, line, away{name: "runs", most: 1}, delaytask.WithMaxRuns(4))
	add(ticks, line, away{name: "runs/all", missed: each, most: 2}, delaytask.WithMaxRuns(5))
	add(without(saved.Add(hour).Before), line, away{name: "ended", when: delaytask.Spec{End: saved.Add(hour)}})
	add(without(down.Add(day).Before), line, away{name: "ends", when: delaytask.Spec{End: down.Add(day)}})
	add(without(down.Add(day).After), line, away{name: "begins", when: delaytask.Spec{Start: down.Add(day)}})
	add(without(func(t time.Time) bool { return t.Day() == 24 || t.Hour() == 3 }), line,
		away{name: "except", missed: each, when: delaytask.Spec{Lines: []string{"!2027-03-24", "!* 3 * * *"}}})
	add(ticks, line, away{name: "jitter", missed: skip}, delaytask.WithJitter(hour))
	add(every(hour*3/2, saved.Add(50*time.Minute), end), "@every 90m/20m", away{name: "every", missed: each})
	at := "@at " + down.Add(day).Format(time.RFC3339)
	add(without(down.Add(day).Before), line,
		away{name: "ends/within", missed: each, within: hour, when: delaytask.Spec{End: down.Add(day)}})
	add([]time.Time{down.Add(day)}, at, away{name: "at"})
	add([]time.Time{down.Add(day)}, at, away{name: "at/within", within: hour})
	berlin := every(day, saved.Add(7*hour/2), back.Add(-day)) // and then summer begins
	add(append(berlin, saved.Add(147*hour), saved.Add(170*hour+hour/2)), "30 2 * * *",
		away{name: "berlin", missed: each, when: delaytask.Spec{Zone: "Europe/Berlin"}})
	add(every(time.Minute, saved.Add(30*time.Second), end), "30 * * * * *", away{name: "minutely", missed: each})
	return all
}

func TestAWeekWithoutAnyProcess(t *testing.T) {
	t.Parallel()
	s := delaytasktest.New(t, delaytasktest.StartAt(saved))
	all, ran := map[string]*away{}, map[string][]string{}
	register(t, s, "t", func(_ context.Context, task *delaytask.Task) error {
		of, a := task.Schedule, all[task.Schedule.Name]
		ran[a.name] = append(ran[a.name], line(of.Tick.UTC(), s.Now(), of.Cause, task.Attempt, of.Missed))
		switch n := a.dueBy(down); {
		case a.fails && !s.Now().Before(back):
			return processor.Permanent(errors.New("broken"))
		case task.Attempt > 1 || n == 0 || !of.Tick.Equal(a.ticks[n-1]):
		case a.open == "a retry":
			return processor.RetryAfter(errors.New("busy"), 10*time.Minute)
		case a.open == "an answer":
			return processor.HandOver(20 * time.Minute)
		}
		return nil
	})
	for _, a := range schedules() {
		all[a.name] = a
		opts := append(a.opts, delaytask.WithOverlap(a.overlap), delaytask.WithMissed(a.missed))
		if a.within > 0 {
			opts = append(opts, delaytask.WithStartWithin(a.within))
		}
		opts = append(opts, delaytask.WithKeepRuns(10_000))
		stored, err := s.SaveSchedule(t.Context(), a.name, a.when, "t", nil, opts...)
		mustOK(t, err)
		a.jitter = stored.NextDue.Sub(stored.NextTick)
	}
	s.RunDue(down)
	mustOK(t, s.PauseSchedule(t.Context(), "paused", delaytask.Reason("by hand")))
	s.Outage(back.Sub(down))
	s.RunDue(end)
	for name, a := range all {
		runs, became := a.outcome()
		history, rows := map[time.Time]string{}, 0
		for page, before := []delaytask.ScheduleTick(nil), (time.Time{}); rows%1000 == 0; rows += max(1, len(page)) {
			var err error
			page, err = s.ScheduleTicks(t.Context(), name, before, 1000)
			mustOK(t, err)
			for _, row := range page {
				n := len(history)
				for _, tick := range a.ticks {
					if !tick.Before(row.Tick) && !tick.After(row.Until) {
						history[tick] = string(row.Outcome)
					}
				}
				if before = row.Tick; len(history) != n+row.Ticks {
					t.Errorf("%s: %d new ticks in %+v", name, len(history)-n, row)
				}
			}
		}
		if !slices.Equal(ran[name], runs) || !maps.Equal(history, became) || rows > len(runs)+4 {
			t.Errorf("%s: %d rows\n got %q\nwant %q\n got %v\nwant %v", name, rows, ran[name], runs, history, became)
		}
	}
}
