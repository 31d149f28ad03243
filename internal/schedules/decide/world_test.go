package decide

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// world is a table with one schedule, a clock, and a node that looks when it should, unless it is away.
type world struct {
	t       *testing.T
	spec    *spec.Spec
	now     row.Time
	s       row.Schedule
	tasks   map[int64]*row.Row
	history []row.ScheduleRun
	away    bool // no process is alive
	lastID  int64

	takes  time.Duration        // how long a run takes; 0: it never starts
	result func(int) row.Status // of the n-th run; nil: completed
	starts int
	ends   map[int64]row.Time // of executing tasks
}

var midnight = row.At(time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC))

// begin returns a world at midnight whose schedule was saved a minute before.
func begin(t *testing.T, s row.Schedule, lines ...string) *world {
	t.Helper()
	w := &world{
		t: t, now: midnight.Add(-time.Minute), tasks: map[int64]*row.Row{}, ends: map[int64]row.Time{},
		takes: time.Second,
	}
	s.ID, s.Name, s.Tag, s.TTR = 1, "job", "tag", 15*time.Second
	w.spec = parse(t, lines...)
	s.Spec = w.spec.String()
	w.s = s
	w.apply(New(w.state()))
	w.until(0)
	return w
}

func parse(t *testing.T, lines ...string) *spec.Spec {
	t.Helper()
	sp, err := spec.Parse(delaytask.Spec{Lines: lines})
	if err != nil {
		t.Fatal(err)
	}
	return sp
}

func (w *world) state() State {
	st := State{
		Schedule: w.s, Spec: w.spec, Now: w.now, Ahead: 10 * time.Second,
		NextID: func() int64 { w.lastID++; return w.lastID }, History: w.history,
	}
	for _, run := range w.history {
		if run.Outcome == row.OutcomeOpen {
			o := Open{Run: run, Gone: true}
			if r := w.tasks[run.TaskID]; r != nil {
				o.Task, o.Gone = *r, false
				if r.Status == row.Executing {
					o.Task.Due = max(r.Due, w.now) // its executor has renewed the lease
				}
			}
			st.Open = append(st.Open, o)
		}
	}
	return st
}

// apply stores a decision as a store does, and fails the test when one of its guards does not hold.
func (w *world) apply(d row.Decision) {
	w.t.Helper()
	if d.Schedule.Version != w.s.Version {
		w.t.Fatalf("version %d of %d", d.Schedule.Version, w.s.Version)
	}
	w.s = d.Schedule
	w.s.Version++
	at := func(run row.ScheduleRun) int {
		same := func(r row.ScheduleRun) bool { return r.Tick == run.Tick && r.Cause == run.Cause }
		return slices.IndexFunc(w.history, same)
	}
	if !d.Forget.IsZero() {
		w.history = slices.DeleteFunc(w.history, func(r row.ScheduleRun) bool { return r.Tick >= d.Forget })
	}
	for _, run := range d.Undone {
		w.history = slices.Delete(w.history, at(run), at(run)+1)
	}
	for _, run := range d.Ended {
		w.history[at(run)] = run
	}
	for _, run := range d.New {
		if at(run) >= 0 {
			w.t.Fatalf("tick %v is decided twice", run.Tick)
		}
		w.history = append(w.history, run)
	}
	for _, c := range d.Changes {
		r := w.tasks[c.ID]
		if r.Version != c.Version || r.Status != c.From {
			w.t.Fatalf("change %+v of %+v", c, r)
		}
		r.Status, r.Due, r.ErrorStack, r.Version = c.To, c.Due, c.ErrorStack, r.Version+1
		delete(w.ends, c.ID)
	}
	for _, r := range d.Insert {
		for _, other := range w.tasks {
			if other.Key == r.Key && !other.Status.Final() {
				w.t.Fatalf("runs %d and %d are open together", other.ID, r.ID)
			}
		}
		r.Created = w.now
		w.tasks[r.ID] = &r
	}
}

// until lets time pass until so long after midnight. Executors work on also while no process decides.
func (w *world) until(d time.Duration) *world {
	w.t.Helper()
	end := midnight.Add(d)
	for {
		next, do := end, func() {}
		sooner := func(at row.Time, f func()) {
			if at = max(at, w.now); at < next {
				next, do = at, f
			}
		}
		for _, id := range slices.Sorted(maps.Keys(w.tasks)) {
			r := w.tasks[id]
			switch {
			case r.Status == row.Pending && w.takes > 0 && !w.away:
				sooner(r.Due, func() { w.start(r) })
			case r.Status == row.Executing:
				sooner(w.ends[id], func() { w.end(r) })
			}
		}
		if !w.away && !w.s.Look.IsZero() {
			sooner(w.s.Look, w.look)
		}
		w.now = next
		if next == end {
			return w
		}
		do()
	}
}

// sleep lets time pass without a process that decides or begins anything.
func (w *world) sleep(d time.Duration) *world {
	w.t.Helper()
	w.away = true
	w.until(w.now.Sub(midnight) + d)
	w.away = false
	return w
}

func (w *world) look() {
	w.t.Helper()
	before := w.s
	w.apply(Decide(w.state()))
	if w.s.Look == before.Look && !w.s.Look.IsZero() && w.s.Look <= w.now {
		w.t.Fatalf("the look at %v changes nothing", w.s.Look)
	}
}

func (w *world) start(r *row.Row) {
	if Late(r, w.now) {
		asks := *r
		r.Status, r.Attempt, r.Version, r.Execution, r.Updated = row.Executing, 1, r.Version+1, w.now, w.now
		if d, taken := Begin(w.state(), &row.Row{ID: r.ID, Version: r.Version, Due: asks.Due}); taken {
			w.apply(d)
			return
		}
		*r = asks
	}
	if r.MaxLate > 0 && w.now.Sub(r.Expected) > r.MaxLate {
		r.Status, r.Due, r.ErrorStack = row.Cancelled, w.now, "too late"
		w.look()
		return
	}
	r.Status, r.Version, r.Attempt = row.Executing, r.Version+1, r.Attempt+1
	r.Execution, r.Due = w.now, w.now.Add(r.TTR)
	w.ends[r.ID] = w.now.Add(w.takes)
	w.starts++
}

func (w *world) end(r *row.Row) {
	r.Status, r.Due, r.Version = row.Completed, w.now, r.Version+1
	if w.result != nil {
		r.Status, r.ErrorStack = w.result(w.starts), "boom\nstack"
	}
	delete(w.ends, r.ID)
	if !w.away {
		w.look()
	}
}

func (w *world) do(d row.Decision, err error) *world {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	w.apply(d)
	return w
}

// wants compares the history, in the order of ticks. A line has the tick and its outcome. A run has its cause as well,
// where it is not the usual one, and when it started, where that was not on its tick.
func (w *world) wants(lines ...string) *world {
	w.t.Helper()
	return w.compare(len(w.history), lines)
}

// first compares the first n rows of the history.
func (w *world) first(n int, lines ...string) { w.t.Helper(); w.compare(n, lines) }

func (w *world) compare(n int, lines []string) *world {
	w.t.Helper()
	slices.SortFunc(w.history, func(a, b row.ScheduleRun) int { return int(a.Tick - b.Tick) })
	var got []string
	for _, run := range w.history[:min(n, len(w.history))] {
		got = append(got, w.line(run))
	}
	if !slices.Equal(got, lines) {
		w.t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(lines, "\n\t"))
	}
	return w
}

func (w *world) line(run row.ScheduleRun) string {
	clock := func(at row.Time) string { return strings.TrimPrefix(at.Std().Format("02 15:04:05"), "01 ") }
	text := clock(run.Tick) + " " + run.Outcome.String()
	if run.Ticks > 1 {
		text += fmt.Sprintf(" %d until %s", run.Ticks, clock(run.Until))
	}
	if run.Cause != row.CauseTick {
		text += " " + run.Cause.String()
	}
	if !run.Start.IsZero() && run.Start != run.Tick {
		text += " at " + clock(run.Start)
	}
	return text
}
