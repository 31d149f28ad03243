package decide

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

const everyMinute = "* * * * *"

func TestTicksRunOnTheirTime(t *testing.T) {
	w := begin(t, row.Schedule{}, everyMinute).until(90 * time.Second)
	w.wants("00:00:00 completed", "00:01:00 completed")
	if w.s.Look != midnight.Add(110*time.Second) || w.s.Success != midnight.Add(time.Minute) {
		t.Errorf("look %v, success %v", w.s.Look, w.s.Success)
	}
}

func TestOverlap(t *testing.T) {
	for _, test := range []struct {
		name  string
		s     row.Schedule
		takes time.Duration
		until time.Duration
		want  []string
	}{
		{"skip", row.Schedule{}, 150 * time.Second, 5*time.Minute + time.Second, []string{
			"00:00:00 completed", "00:01:00 skipped", "00:02:00 skipped", "00:03:00 open", "00:04:00 skipped",
			"00:05:00 skipped",
		}},
		{"queue one", row.Schedule{Overlap: delaytask.OverlapQueueOne}, 150 * time.Second, 301 * time.Second, []string{
			"00:00:00 completed", "00:01:00 skipped", "00:02:00 completed late at 00:02:30",
			"00:03:00 skipped 2 until 00:04:00", "00:05:00 open late",
		}},
		{"replace", row.Schedule{Overlap: delaytask.OverlapReplace}, 150 * time.Second, 2*time.Minute + time.Second,
			[]string{"00:00:00 cancelled", "00:01:00 cancelled", "00:02:00 open"}},
		{"allow", row.Schedule{Overlap: delaytask.OverlapAllow, MaxOpen: 2}, 150 * time.Second,
			4*time.Minute + time.Second, []string{
				"00:00:00 completed", "00:01:00 completed", "00:02:00 skipped", "00:03:00 open", "00:04:00 open",
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := begin(t, test.s, everyMinute)
			w.takes = test.takes
			w.until(test.until).wants(test.want...)
		})
	}
}

func TestMissed(t *testing.T) {
	const week = 7 * 24 * time.Hour
	allow := func(s row.Schedule, n int) row.Schedule { s.Overlap, s.MaxOpen = delaytask.OverlapAllow, n; return s }
	for _, test := range []struct {
		name  string
		s     row.Schedule
		lines string
		away  time.Duration // from half a minute after midnight on
		back  time.Duration // how long after that the history is as wanted
		want  []string
	}{
		{"once", row.Schedule{}, everyMinute, 10 * time.Minute, 15 * time.Second, []string{
			"00:00:00 completed", "00:01:00 missed 9 until 00:09:00", "00:10:00 completed at 00:10:30",
		}},
		{"once, after a week", row.Schedule{}, "30 2 * * *", week, 15 * time.Second, []string{
			"02:30:00 missed 6 until 06 02:30:00", "07 02:30:00 completed late at 08 00:00:30",
		}},
		{"skip, a minute late at most", row.Schedule{Missed: delaytask.MissedSkip}, "*/5 * * * *", 10 * time.Minute,
			time.Second, []string{"00:00:00 completed", "00:05:00 missed", "00:10:00 open"}},
		{"skip", row.Schedule{Missed: delaytask.MissedSkip}, "*/5 * * * *", 12 * time.Minute, 15 * time.Second,
			[]string{"00:00:00 completed", "00:05:00 missed 2 until 00:10:00"}},
		{"all, one at a time", row.Schedule{Missed: delaytask.MissedAll}, "*/5 * * * *", 12 * time.Minute,
			15 * time.Second, []string{
				"00:00:00 completed", "00:05:00 completed late at 00:12:30", "00:10:00 completed late at 00:12:31",
			}},
		{"all, two at a time", allow(row.Schedule{Missed: delaytask.MissedAll}, 2), "*/5 * * * *", 17 * time.Minute,
			15 * time.Second, []string{
				"00:00:00 completed", "00:05:00 completed late at 00:17:30", "00:10:00 completed late at 00:17:30",
				"00:15:00 completed late at 00:17:31",
			}},
		{"start within, once", row.Schedule{StartWithin: 6 * time.Hour}, "30 2 * * *", 9 * time.Hour, 15 * time.Second,
			[]string{"02:30:00 missed"}},
		{"start within, no tick is left", row.Schedule{StartWithin: time.Hour}, "@at 2027-01-01T02:30", 9 * time.Hour,
			15 * time.Second, []string{"02:30:00 missed"}},
		{"start within, barely, no tick is left", row.Schedule{StartWithin: 5 * time.Second}, "@at 2027-01-01T00:01",
			time.Minute, 15 * time.Second, []string{"00:01:00 missed"}},
		{"start within, all", row.Schedule{Missed: delaytask.MissedAll, StartWithin: 4 * time.Minute}, "*/5 * * * *",
			13 * time.Minute, 15 * time.Second, []string{
				"00:00:00 completed", "00:05:00 missed", "00:10:00 completed late at 00:13:30",
			}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := begin(t, test.s, test.lines).until(30 * time.Second)
			w.sleep(test.away).until(30*time.Second + test.away + test.back).wants(test.want...)
		})
	}
}

func TestAllRunsTheNewestThousand(t *testing.T) {
	w := begin(t, row.Schedule{Missed: delaytask.MissedAll}, everyMinute).until(30 * time.Second)
	w.takes = time.Millisecond
	w.sleep(24 * time.Hour).until(24*time.Hour + 55*time.Second)
	w.first(3, "00:00:00 completed", "00:01:00 missed 440 until 07:20:00", "07:21:00 completed late at 02 00:00:30")
	if len(w.history) != 1003 { // the run before, one row of what was dropped, and the tick that is planted ahead
		t.Errorf("%d rows", len(w.history))
	}
}

// A run that ended while no process decided was in the way of the ticks up to its end, and of no later one.
func TestStoredTimesAloneDecideWhatWasOverlapped(t *testing.T) {
	w := begin(t, row.Schedule{}, everyMinute)
	w.takes = 150 * time.Second
	w.until(30 * time.Second).sleep(5 * time.Minute).until(5*time.Minute + 31*time.Second)
	w.wants("00:00:00 completed", "00:01:00 skipped 2 until 00:02:00", "00:03:00 missed 2 until 00:04:00",
		"00:05:00 open")
}

func TestNoAttemptBeginsAfterTheNextTick(t *testing.T) {
	for overlap, bound := range map[delaytask.Overlap]row.Time{
		delaytask.OverlapSkip: midnight.Add(time.Minute), delaytask.OverlapQueueOne: midnight.Add(time.Minute),
		delaytask.OverlapReplace: midnight.Add(time.Minute), delaytask.OverlapAllow: 0,
	} {
		if of := begin(t, row.Schedule{Overlap: overlap}, everyMinute).tasks[1].TickOf; of.RetryBefore != bound {
			t.Errorf("overlap %s: bound %v", overlap, of.RetryBefore)
		}
	}
	if of := begin(t, row.Schedule{RetryPastNext: true}, everyMinute).tasks[1].TickOf; of.RetryBefore != 0 {
		t.Errorf("bound %v", of.RetryBefore)
	}
}

func TestNothingServesTheTag(t *testing.T) {
	w := begin(t, row.Schedule{}, everyMinute)
	w.takes = 0
	w.until(2*time.Minute+time.Second).wants("00:00:00 open", "00:01:00 skipped", "00:02:00 skipped")
	if note := w.history[1].Note; note != "task 1 was waiting to run: nothing has taken it" {
		t.Error(note)
	}
	w.takes = time.Second
	w.until(3*time.Minute+30*time.Second).wants("00:00:00 completed at 00:02:01", "00:01:00 skipped",
		"00:02:00 skipped", "00:03:00 completed")
}

func TestAPauseMissesNothing(t *testing.T) {
	w := begin(t, row.Schedule{}, everyMinute).until(55 * time.Second)
	st := w.state()
	st.Actor = "ada"
	w.do(Pause(st, "maintenance"))
	w.until(10*time.Minute + 30*time.Second).wants("00:00:00 completed")
	if w.s.State != row.SchedulePaused || w.s.Reason != "maintenance" || w.s.Look != 0 {
		t.Errorf("%+v", w.s)
	}
	w.do(Resume(w.state()))
	w.until(11*time.Minute+30*time.Second).wants("00:00:00 completed", "00:01:00 skipped 10 until 00:10:00",
		"00:11:00 completed")
	const note = "paused by ada from 2027-01-01T00:00:55Z to 2027-01-01T00:10:30Z: maintenance"
	if got := w.history[1].Note; got != note || w.s.MissedTicks != 0 || w.s.Since != midnight.Add(630*time.Second) {
		t.Errorf("the history tells %q; %+v", got, w.s)
	}
}

// An operator ends a pause otherwise: the history has its ticks by the definition of the pause.
func TestAPauseIsInTheHistoryHoweverItEnds(t *testing.T) {
	sp := parse(t, "*/10 * * * *")
	for name, end := range map[string]func(State) (row.Decision, error){
		"reset": Reset,
		"skip":  func(st State) (row.Decision, error) { d, _, err := SkipNext(st, ""); return d, err },
		"edit": func(st State) (row.Decision, error) {
			to := st.Schedule
			to.Spec = sp.String()
			return Edit(st, to, sp)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, row.Schedule{}, everyMinute).until(55 * time.Second)
			w.do(Pause(w.state(), ""))
			w.until(150 * time.Second).do(end(w.state()))
			w.first(2, "00:00:00 completed", "00:01:00 skipped 2 until 00:02:00")
			if w.s.State != row.SchedulePaused || w.s.Next < w.now {
				t.Errorf("it goes on at %v, %v", w.s.Next, w.s.State)
			}
		})
	}
}

func TestAPauseBetweenPlantingAndTheTickLosesNothing(t *testing.T) {
	w := begin(t, row.Schedule{}, everyMinute).until(52 * time.Second)
	w.do(Pause(w.state(), ""))
	w.until(55 * time.Second).do(Resume(w.state()))
	w.until(65*time.Second).wants("00:00:00 completed", "00:01:00 completed")
}

func TestAPauseLeavesWhatRuns(t *testing.T) {
	w := begin(t, row.Schedule{}, everyMinute)
	w.takes = 30 * time.Second
	w.until(10 * time.Second).do(Pause(w.state(), ""))
	w.until(5 * time.Minute).wants("00:00:00 completed")
}

// Another process decides between the reads of the schedule and of its history, where an operator has skipped a tick.
func TestAHistoryThatIsNewerThanTheScheduleIsDecidedOn(t *testing.T) {
	w := begin(t, row.Schedule{Overlap: delaytask.OverlapAllow, Missed: delaytask.MissedAll}, everyMinute).
		until(50 * time.Second)
	st := w.state()
	st.Now = midnight.Add(150 * time.Second)
	tick := midnight.Add(2 * time.Minute)
	st.Schedule.Next, st.Schedule.Last = tick, midnight.Add(10*time.Minute)
	for _, at := range []row.Time{st.Schedule.Last, tick} {
		st.History = append(st.History, row.ScheduleRun{Tick: at, Until: at, Ticks: 1, Outcome: row.OutcomeSkipped})
	}
	if d := Decide(st); d.Schedule.Next <= tick {
		t.Errorf("the next tick is %v, which was skipped", d.Schedule.Next)
	}
}

func TestPauseAfterFailures(t *testing.T) {
	w := begin(t, row.Schedule{PauseAfter: 3}, everyMinute)
	results := []row.Status{row.Failed, row.Cancelled, row.Failed, row.Completed, row.Failed, row.Failed, row.Failed}
	w.result = func(n int) row.Status { return results[n-1] }
	w.until(30 * time.Minute)
	w.wants("00:00:00 failed", "00:01:00 cancelled", "00:02:00 failed", "00:03:00 completed", "00:04:00 failed",
		"00:05:00 failed", "00:06:00 failed")
	if w.s.State != row.SchedulePaused || w.s.Reason != "3 runs failed in a row: boom" {
		t.Errorf("%+v", w.s)
	}
	w.result = nil
	w.do(Resume(w.state())).until(30*time.Minute + 70*time.Second)
	if w.s.Failures != 0 || w.s.State != row.ScheduleActive {
		t.Errorf("%+v", w.s)
	}
}

func TestTrigger(t *testing.T) {
	w := begin(t, row.Schedule{}, everyMinute).until(55 * time.Second)
	trigger := func(beside bool) error {
		d, _, err := Trigger(w.state(), beside)
		if err == nil {
			w.apply(d)
		}
		return err
	}
	// The tick that was planted is decided anew when it is due, and then the triggered run is open.
	w.takes = 10 * time.Second
	if err := trigger(false); err != nil {
		t.Fatal(err)
	}
	w.until(58*time.Second).wants("00:00:00 completed", "00:00:55 open manual")
	if err := trigger(false); !errors.Is(err, delaytask.ErrScheduleBusy) {
		t.Errorf("beside a run that executes: %v", err)
	}
	if err := trigger(true); err != nil {
		t.Error(err)
	}
	w.until(90*time.Second).wants("00:00:00 completed", "00:00:55 completed manual", "00:00:58 completed manual",
		"00:01:00 skipped")
	w.do(Pause(w.state(), ""))
	if err := trigger(false); err != nil || w.s.State != row.SchedulePaused {
		t.Error("while paused:", err)
	}
}

// Nothing serves the tag, so a run waits while later ticks are skipped. Taking it back must not bring those back.
func TestARunThatWaitsBehindSkippedTicksIsCancelled(t *testing.T) {
	for name, operate := range map[string]func(State) (row.Decision, error){
		"trigger": func(st State) (row.Decision, error) { d, _, err := Trigger(st, false); return d, err },
		"skip":    func(st State) (row.Decision, error) { d, _, err := SkipNext(st, ""); return d, err },
		"edit": func(st State) (row.Decision, error) {
			to := st.Schedule
			to.Tag = "other"
			return Edit(st, to, st.Spec)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, row.Schedule{}, everyMinute)
			w.takes = 0
			w.until(2*time.Minute + 30*time.Second)
			w.do(operate(w.state()))
			w.takes = time.Second
			w.until(6*time.Minute).first(3, "00:00:00 cancelled", "00:01:00 skipped", "00:02:00 skipped")
			if last := w.history[len(w.history)-1]; last.Tick != midnight.Add(6*time.Minute) {
				t.Error("it is stuck at", w.s.Next)
			}
		})
	}
}

func TestSkipNext(t *testing.T) {
	w := begin(t, row.Schedule{}, everyMinute).until(55 * time.Second)
	for _, want := range []time.Duration{time.Minute, 2 * time.Minute} {
		d, tick, err := SkipNext(w.state(), "not today")
		if err != nil || tick != midnight.Add(want) {
			t.Error(tick, err)
		}
		w.apply(d)
	}
	w.until(3*time.Minute+30*time.Second).wants("00:00:00 completed", "00:01:00 skipped", "00:02:00 skipped",
		"00:03:00 completed")
}

func TestAnEditRunsNothingAtOnce(t *testing.T) {
	edit := func(w *world, change func(*row.Schedule), lines ...string) {
		sp := parse(t, lines...)
		to := w.s
		to.Spec = sp.String()
		if change != nil {
			change(&to)
		}
		d, err := Edit(w.state(), to, sp)
		if err != nil {
			t.Fatal(err)
		}
		w.spec = sp
		w.apply(d)
	}
	w := begin(t, row.Schedule{}, everyMinute).until(55 * time.Second)
	edit(w, nil, "*/5 * * * *")
	w.until(6*time.Minute).wants("00:00:00 completed", "00:05:00 completed")

	// The same ticks with another tag: the cursor stays, and the planted run is planted anew.
	w = begin(t, row.Schedule{}, everyMinute).until(55 * time.Second)
	edit(w, func(s *row.Schedule) { s.Tag = "other" }, everyMinute)
	w.until(80*time.Second).wants("00:00:00 completed", "00:01:00 completed")
	if tag := w.tasks[w.s.RunID].Tag; tag != "other" {
		t.Error(tag)
	}

	// A tick whose due time is to come is not lost, although the tick itself has passed.
	w = begin(t, row.Schedule{}, everyMinute).until(70 * time.Second)
	edit(w, func(s *row.Schedule) { s.Jitter = 50 * time.Second }, everyMinute)
	if due := midnight.Add(time.Minute + Jitter("job", 50*time.Second)); w.now < due {
		w.until(2*time.Minute).wants("00:00:00 completed", "00:01:00 completed")
	}

	// While a run executes it stays in the way.
	w = begin(t, row.Schedule{}, everyMinute)
	w.takes = 90 * time.Second
	w.until(10 * time.Second)
	edit(w, nil, "*/30 * * * * *")
	w.until(100*time.Second).wants("00:00:00 completed", "00:00:30 skipped", "00:01:00 skipped", "00:01:30 skipped")
}

func TestTheRunOfAnotherDefinitionIsNotDecidedAnew(t *testing.T) {
	w := begin(t, row.Schedule{}, everyMinute)
	w.takes = time.Minute
	w.until(10 * time.Second)
	sp, err := spec.Parse(delaytask.Spec{Lines: []string{"3 * * * *"}})
	if err != nil {
		t.Fatal(err)
	}
	to := w.s
	to.Spec = sp.String()
	w.do(Edit(w.state(), to, sp))
	w.spec = sp
	r := w.tasks[w.s.RunID] // its process stops, and gives it back
	r.Status, r.Version, r.Attempt, r.Due = row.Pending, r.Version+1, 0, w.now
	w.do(Pause(w.state(), "")).wants("00:00:00 cancelled")
	if next := midnight.Add(3 * time.Minute); w.s.Next != next {
		t.Errorf("the next tick is %v, want %v", w.s.Next, next)
	}
}

// Two edits follow a skip: the run that the first one has planted is taken back by the second one, before the tick that
// was skipped is due.
func TestATickThatWasSkippedAheadIsNotDecidedAnew(t *testing.T) {
	w := begin(t, row.Schedule{}, everyMinute)
	w.until(30 * time.Second)
	edit := func(line string) {
		sp, to := parse(t, line), w.s
		to.Spec = sp.String()
		w.do(Edit(w.state(), to, sp))
		w.spec = sp
	}
	d, _, err := SkipNext(w.state(), "maintenance")
	w.do(d, err)
	edit("5 * * * * *")
	w.until(57 * time.Second)
	edit("* * * * * *")
	w.until(62 * time.Second)
	w.wants("00:00:00 completed", "00:00:58 completed", "00:00:59 skipped", "00:01:00 skipped", "00:01:01 open")
}

// Two ticks are skipped. The ticks that another definition has before and between them run, whatever an operator, an
// outage or the last run do meanwhile.
func TestASkippedTickIsSkippedInEachDefinition(t *testing.T) {
	skip := func(w *world) {
		d, _, err := SkipNext(w.state(), "maintenance")
		w.do(d, err)
	}
	for name, test := range map[string]struct {
		s         row.Schedule
		lines     string
		meanwhile func(w *world)
		want      []string
	}{
		"denser": {lines: "*/20 * * * * *", want: []string{
			"00:00:00 completed", "00:00:20 completed", "00:00:40 completed", "00:01:00 skipped",
			"00:01:20 completed", "00:01:40 completed", "00:02:00 skipped", "00:02:20 completed",
		}},
		"without these ticks": {lines: "30 * * * * *", want: []string{
			"00:00:00 completed", "00:00:30 completed", "00:01:00 skipped", "00:01:30 completed",
			"00:02:00 skipped", "00:02:30 open",
		}},
		"one more is skipped": {lines: "*/20 * * * * *", meanwhile: skip, want: []string{
			"00:00:00 completed", "00:00:20 skipped", "00:00:40 completed", "00:01:00 skipped",
			"00:01:20 completed", "00:01:40 completed", "00:02:00 skipped", "00:02:20 completed",
		}},
		"paused with a planted run": {lines: "*/20 * * * * *", meanwhile: func(w *world) {
			w.until(55 * time.Second)
			w.do(Pause(w.state(), ""))
			w.do(Resume(w.state()))
		}, want: []string{
			"00:00:00 completed", "00:00:20 completed", "00:00:40 completed", "00:01:00 skipped",
			"00:01:20 completed", "00:01:40 completed", "00:02:00 skipped", "00:02:20 completed",
		}},
		"triggered with a planted run": {lines: "*/20 * * * * *", meanwhile: func(w *world) {
			w.until(15 * time.Second)
			d, _, err := Trigger(w.state(), false)
			w.do(d, err)
		}, want: []string{
			"00:00:00 completed", "00:00:15 completed manual", "00:00:20 completed", "00:00:40 completed",
			"00:01:00 skipped", "00:01:20 completed", "00:01:40 completed", "00:02:00 skipped", "00:02:20 completed",
		}},
		"an outage": {lines: "*/20 * * * * *", meanwhile: func(w *world) {
			w.until(25 * time.Second).sleep(110 * time.Second)
		}, want: []string{
			"00:00:00 completed", "00:00:20 completed", "00:00:40 missed", "00:01:00 skipped", "00:01:20 missed",
			"00:01:40 completed at 00:02:15", "00:02:00 skipped", "00:02:20 completed",
		}},
		"the last run": {s: row.Schedule{MaxRuns: 3}, lines: "*/20 * * * * *", want: []string{
			"00:00:00 completed", "00:00:20 completed", "00:00:40 completed", "00:01:00 skipped", "00:02:00 skipped",
		}},
		"forgotten": {lines: "*/20 * * * * *", meanwhile: func(w *world) {
			w.until(85 * time.Second)
			w.do(Reset(w.state()))
		}, want: []string{
			"00:00:00 completed", "00:00:20 completed", "00:00:40 completed", "00:01:00 skipped",
			"00:01:20 completed", "00:01:40 completed", "00:02:00 completed", "00:02:20 completed",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t, test.s, everyMinute).until(5 * time.Second)
			skip(w)
			skip(w)
			sp, to := parse(t, test.lines), w.s
			to.Spec = sp.String()
			w.do(Edit(w.state(), to, sp))
			w.spec = sp
			if test.meanwhile != nil {
				test.meanwhile(w)
			}
			w.until(145 * time.Second).wants(test.want...)
		})
	}
}

func TestMaxRunsCountsWhatRuns(t *testing.T) {
	w := begin(t, row.Schedule{MaxRuns: 2}, everyMinute)
	w.takes = 90 * time.Second
	w.until(10*time.Minute).wants("00:00:00 completed", "00:01:00 skipped", "00:02:00 completed")
	if w.s.State != row.ScheduleEnded || w.s.Look != 0 {
		t.Errorf("%+v", w.s)
	}
}

func TestJitterKeepsDistances(t *testing.T) {
	w := begin(t, row.Schedule{Jitter: time.Minute}, everyMinute).until(10 * time.Minute)
	for _, run := range w.history {
		if run.Outcome == row.OutcomeCompleted && run.Start.Sub(run.Tick) != Jitter("job", time.Minute) {
			t.Errorf("%+v", run)
		}
	}
	if Jitter("a", time.Minute) == Jitter("b", time.Minute) || Jitter("a", 0) != 0 {
		t.Error("the name does not decide")
	}
}

func TestAClockThatStepsBackRepeatsNothing(t *testing.T) {
	w := begin(t, row.Schedule{}, everyMinute).until(5*time.Minute + 30*time.Second)
	w.now = midnight.Add(2*time.Minute + 30*time.Second)
	n := len(w.history)
	w.until(5*time.Minute + 30*time.Second)
	if len(w.history) != n {
		t.Errorf("%d ticks more", len(w.history)-n)
	}
}

func TestAResetDecidesAnewWhatAClockAheadHasDecided(t *testing.T) {
	w := begin(t, row.Schedule{}, everyMinute).until(10*time.Minute + 55*time.Second)
	w.now = midnight.Add(90 * time.Second)
	w.do(Reset(w.state()))
	w.until(4*time.Minute+30*time.Second).wants("00:00:00 completed", "00:01:00 completed", "00:02:00 completed",
		"00:03:00 completed", "00:04:00 completed")
}

func TestARunThatIsGoneIsUnknown(t *testing.T) {
	w := begin(t, row.Schedule{}, everyMinute).until(500 * time.Millisecond)
	delete(w.tasks, 1)
	clear(w.ends)
	w.until(90*time.Second).wants("00:00:00 unknown", "00:01:00 completed")
}

func TestReplaceWaitsForTheLeaseOfAnExecutor(t *testing.T) {
	w := begin(t, row.Schedule{Overlap: delaytask.OverlapReplace}, everyMinute)
	w.s.TTR = 90 * time.Second // as the planted run has it
	w.tasks[1].TTR = 90 * time.Second
	w.takes = time.Hour
	w.until(59 * time.Second)
	st := w.state()
	st.Now = midnight.Add(time.Minute)
	if c := Decide(st).Changes; len(c) != 1 || c[0].LeaseBy != midnight.Add(90*time.Second) {
		t.Errorf("a renewal may come in between: %+v", c)
	}
	w.until(61*time.Second).wants("00:00:00 cancelled", "00:01:00 open")
	if due := w.tasks[w.s.RunID].Due; due != midnight.Add(90*time.Second) {
		t.Error(due)
	}
}

func TestBackfill(t *testing.T) {
	for atOnce, want := range map[int][]string{
		1: {"00:00:00 completed backfill at 00:10:30", "00:01:00 completed backfill at 00:10:31",
			"00:02:00 completed backfill at 00:10:32"},
		2: {"00:00:00 completed backfill at 00:10:30", "00:01:00 completed backfill at 00:10:30",
			"00:02:00 completed backfill at 00:10:31"},
	} {
		parent := begin(t, row.Schedule{}, everyMinute).until(10*time.Minute + 30*time.Second)
		parent.do(Pause(parent.state(), ""))
		d, err := Backfill(parent.state(), 7, midnight, midnight.Add(2*time.Minute), atOnce)
		if err != nil {
			t.Fatal(err)
		}
		child := *parent
		child.s, child.history, child.tasks = row.Schedule{}, nil, map[int64]*row.Row{}
		if child.spec, err = spec.ParseText(d.Schedule.Spec); err != nil {
			t.Fatal(err)
		}
		child.apply(d)
		child.until(11*time.Minute + 30*time.Second).wants(want...)
		if child.s.State != row.ScheduleEnded || child.s.Name != "job/backfill/7" {
			t.Errorf("%+v", child.s)
		}
	}
	w := begin(t, row.Schedule{}, everyMinute).until(time.Minute)
	for to, want := range map[time.Duration]string{
		-time.Minute: "it ends before it begins", -30 * time.Second: "no tick was found in it",
		5 * time.Minute: "the tick " + midnight.Add(5*time.Minute).Std().Format(time.RFC3339) + " is to come",
	} {
		_, err := Backfill(w.state(), 7, midnight.Add(-50*time.Second), midnight.Add(to), 1)
		if !errors.Is(err, delaytask.ErrInvalidRange) || !strings.HasSuffix(err.Error(), want) {
			t.Error(to, err)
		}
	}
}

func TestAnOperationDoesNotForgetTheLeaseOfAReplacedRun(t *testing.T) {
	w := begin(t, row.Schedule{Overlap: delaytask.OverlapReplace}, everyMinute)
	w.takes = 90 * time.Second
	w.until(50 * time.Second)
	w.tasks[w.s.RunID].Due = midnight.Add(70 * time.Second) // its executor has moved the lease
	w.until(65 * time.Second)
	if _, _, err := Trigger(w.state(), false); !errors.Is(err, delaytask.ErrScheduleBusy) {
		t.Error(err)
	}
	waits := w.s.RunID
	d, _, err := Trigger(w.state(), true)
	w.do(d, err).until(80 * time.Second)
	if r := w.tasks[waits]; r.Status != row.Executing || r.Execution != midnight.Add(70*time.Second) {
		t.Errorf("%v, began at %v", r.Status, r.Execution)
	}
}
