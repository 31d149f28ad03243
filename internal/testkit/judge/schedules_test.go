package judge

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/spec"
	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// everyTen is a schedule with a tick in each ten seconds, which counts them from noon.
const everyTen = 7

func tickAt(seconds float64) row.Time { return row.At(at(seconds)) }

// decide is a decision that moves the cursor to the given second.
func (s *story) decide(seconds float64, version int64, next float64, change func(*row.Decision)) *story {
	sp, err := spec.Parse(delaytask.Spec{Lines: []string{"@every 10s"}})
	if err != nil {
		panic(err)
	}
	d := row.Decision{Schedule: row.Schedule{
		ID: everyTen, Name: "job", Version: version, Spec: sp.String(), Tag: "t", Next: tickAt(next),
		Last: tickAt(next - 10), KeepRuns: 100,
	}}
	if version < 0 {
		d.Write, d.Schedule.Version = row.WriteNew, 0
	}
	if change != nil {
		change(&d)
	}
	text, err := json.Marshal(d)
	if err != nil {
		panic(err)
	}
	return s.add(seconds, "db", journal.Decide, journal.Event{ID: everyTen, Detail: string(text), Clock: at(seconds)})
}

// plants adds the run of a tick to a decision.
func plants(id int64, seconds float64, key string) func(*row.Decision) {
	return func(d *row.Decision) {
		tick := tickAt(seconds)
		d.New = append(d.New, row.ScheduleRun{Tick: tick, Until: tick, Ticks: 1, TaskID: id})
		d.Insert = append(d.Insert, row.Row{
			ID: id, Tag: "t", Key: key, Expected: tick, Due: tick,
			TickOf: &row.TickOf{Schedule: "job", Tick: tick, RetryBefore: tick.Add(10e9)},
		})
	}
}

// skips adds a row for a tick that does not run.
func skips(seconds float64) func(*row.Decision) {
	return func(d *row.Decision) {
		tick := tickAt(seconds)
		d.New = append(d.New, row.ScheduleRun{Tick: tick, Until: tick, Ticks: 1, Outcome: row.OutcomeSkipped})
	}
}

// plantedRow is the row of a run as it is stored.
func (s *story) plantedRow(seconds float64, id int64, due float64, key string) *story {
	return s.add(seconds, "db", journal.Write, journal.Event{
		ID: id, Tag: "t", Key: key, Status: pending, Due: at(due), Expected: at(due),
	})
}

// first is a schedule that is saved, and whose first run is planted.
func (s *story) first() *story {
	return s.decide(1, -1, 20, plants(1, 10, "schedule:job")).plantedRow(1, 1, 10, "schedule:job")
}

var scheduleStories = []struct {
	name     string
	violated Invariant
	told     *story
}{
	{"two ticks in order", clean, tell().first().decide(12, 0, 30, skips(20))},
	{"a tick is decided twice", 13, tell().first().decide(12, 0, 30, skips(10))},
	{"the cursor leaves a tick out", 13, tell().first().decide(12, 0, 40, skips(30))},
	{"a decision was made for an older version", 13, tell().first().decide(12, 0, 30, skips(20)).
		decide(13, 0, 40, skips(30))},
	{"a tick that the spec does not have", 13, tell().first().decide(12, 0, 30, func(d *row.Decision) {
		skips(20)(d)
		skips(25)(d)
	})},
	{"a run of another tick than the history says", 13, tell().first().decide(12, 0, 30, func(d *row.Decision) {
		plants(2, 20, "k")(d)
		d.Insert[0].TickOf.Tick = tickAt(30)
	})},
	{"a pause leaves ticks out", clean, tell().first().
		decide(12, 0, 20, func(d *row.Decision) { d.Schedule.State = row.SchedulePaused }).decide(35, 1, 40, nil)},
	{"a run is planted beside one that is open", 14, tell().first().decide(12, 0, 30, plants(2, 20, "other")).
		plantedRow(12, 2, 20, "other")},
	{"a run is retried past the next tick", 14, tell().first().write(10, 1, 1, executing, 1, 0, 15).
		write(15.1, 1, 2, pending, 0, 1, 21)},
	{"a run is retried before the next tick", clean, tell().first().write(10, 1, 1, executing, 1, 0, 15).
		write(15.1, 1, 2, pending, 0, 1, 16)},
	{"a tick is not decided", 15, tell().first().write(10, 1, 1, executing, 1, 0, 15).
		write(11, 1, 2, completed, 1, 0, 11).over()},
	{"a tick is skipped that a single node runs", 16, tell().first().write(10, 1, 1, executing, 1, 0, 15).
		write(11, 1, 2, completed, 1, 0, 11).decide(22, 0, 30, func(d *row.Decision) {
		skips(20)(d)
		d.Schedule.Look = tickAt(23)
		d.Ended = []row.ScheduleRun{{
			Tick: tickAt(10), Until: tickAt(10), Ticks: 1, TaskID: 1, Outcome: row.OutcomeCompleted, Finish: tickAt(11),
		}}
	}).decide(30, 1, 40, skips(30)).decide(40, 2, 50, skips(40)).decide(50, 3, 60, skips(50)).
		decide(60, 4, 70, skips(60)).
		over()},
	{"a tick waits for a run whose end is shown when it may not start any more", clean, endShownAt(36)},
	{"a tick is too late that may still start when the end of the run before is shown", 16, endShownAt(33)},
}

// endShownAt is a run whose lease ends at second 32. The next tick may start until 34.
func endShownAt(seconds float64) *story {
	queued := func(more func(*row.Decision)) func(*row.Decision) {
		return func(d *row.Decision) {
			d.Schedule.Overlap, d.Schedule.StartWithin = delaytask.OverlapQueueOne, 4*time.Second
			more(d)
		}
	}
	return tell().decide(1, -1, 30, queued(plants(1, 20, "schedule:job"))).plantedRow(1, 1, 20, "schedule:job").
		write(20, 1, 1, executing, 1, 0, 32).
		decide(23, 0, 30, queued(func(d *row.Decision) { d.Schedule.Look = tickAt(32) })).
		write(seconds, 1, 2, failed, 0, 1, 32).
		decide(seconds+.1, 1, 40, queued(func(d *row.Decision) {
			d.Schedule.State = row.SchedulePaused
			d.Ended = []row.ScheduleRun{{Tick: tickAt(20), Until: tickAt(20), Ticks: 1, TaskID: 1,
				Outcome: row.OutcomeFailed, Start: tickAt(20), Finish: tickAt(32)}}
			d.New = []row.ScheduleRun{{Tick: tickAt(30), Until: tickAt(30), Ticks: 1, Outcome: row.OutcomeMissed}}
		})).over()
}

func TestStoriesOfSchedules(t *testing.T) {
	t.Parallel()
	for _, c := range scheduleStories {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			met := false
			for _, v := range Judge(journal.Merge(c.told.events), rules).Violations {
				met = met || v.Invariant == c.violated
				if c.violated == clean || v.Invariant > 12 && v.Invariant != c.violated || len(v.Events) == 0 {
					t.Errorf("want a violation of %d alone (%d: none): %v", c.violated, clean, v)
				}
			}
			if !met && c.violated != clean {
				t.Errorf("want a violation of %d", c.violated)
			}
		})
	}
}
