package judge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/schedules/spec"
	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// history is a journal, sorted by what it tells of.
type history struct {
	saves   map[string]*save // by body
	tasks   map[int64]*task
	ordered []*task           // by id
	claims  []claim           // by task and version
	ops     []*span           // cancels, reschedules, retries
	cancels map[int64][]*span // of these, by task
	stops   []*span
	starts  []*journal.Event // of lives
	faults  []*span
	crashed map[string]*journal.Event // by node
	drain   *journal.Event
	done    *journal.Event
	rows    bool // the journal ends with the table

	calendars []*calendar
	planted   map[int64]*planted // runs of schedules, by task
	withdrawn map[int64]*decided // the decisions that cancelled them
	asked     []*span            // operations on schedules
	specs     map[string]*spec.Spec
}

// span is what begins and may end: a call and its return, a run, a graceful stop, a fault. The end is nil when the
// process ended before, and for a fault of a moment.
type span struct{ begin, end *journal.Event }

// ended reports whether it has ended, as the class says.
func (s *span) ended(class journal.Class) bool {
	return s != nil && s.end != nil && s.end.Error == class
}

// save is everything that was tried to store one task.
type save struct {
	tries  []*span
	stored []int64 // ids of the tasks with its body, as the database shows them
}

// task is everything that is known of one id.
type task struct {
	id       int64
	runs     []*span
	writes   []*journal.Event // in the order of their versions
	leases   []*journal.Event
	finishes []*journal.Event // completions by token
	row      *journal.Event
}

func read(events []journal.Event) *history {
	h := &history{
		saves: map[string]*save{}, tasks: map[int64]*task{}, cancels: map[int64][]*span{},
		crashed: map[string]*journal.Event{}, planted: map[int64]*planted{}, withdrawn: map[int64]*decided{},
		specs: map[string]*spec.Spec{},
	}
	open := map[string]*span{}
	begin := func(name string, e *journal.Event) *span {
		s := &span{begin: e}
		open[name] = s
		return s
	}
	for i := range events {
		e := &events[i]
		if h.crashed[e.Node] != nil {
			continue // nothing that it did afterwards counts
		}
		switch e.Kind {
		case journal.CallSave:
			s := h.saves[e.Body]
			if s == nil {
				s = &save{}
				h.saves[e.Body] = s
			}
			s.tries = append(s.tries, begin(e.Op, e))
		case journal.CallCancel, journal.CallReschedule, journal.CallRetry:
			o := begin(e.Op, e)
			h.ops = append(h.ops, o)
			if e.Kind == journal.CallCancel {
				h.cancels[e.ID] = append(h.cancels[e.ID], o)
			}
		case journal.CallFinish:
			t := h.task(e.ID)
			t.finishes = append(t.finishes, e)
		case journal.RunStart:
			t := h.task(e.ID)
			t.runs = append(t.runs, begin(e.Op, e))
		case journal.FaultBegin:
			h.faults = append(h.faults, begin(e.Op, e))
		case journal.CallSchedule:
			h.asked = append(h.asked, begin(e.Op, e))
		case journal.Decide:
			h.decide(e)
		case journal.Tick:
			h.tick(e)
		case journal.ReturnSave, journal.ReturnCancel, journal.ReturnReschedule, journal.ReturnRetry, journal.RunEnd,
			journal.FaultEnd, journal.ReturnSchedule:
			if s := open[e.Op]; s != nil {
				s.end = e
			}
		case journal.NodeStart:
			h.starts = append(h.starts, e)
		case journal.NodeCrash:
			h.crashed[e.Node] = e
		case journal.NodeStop:
			h.stops = append(h.stops, begin("stop of "+e.Node, e))
		case journal.NodeStopped:
			if s := open["stop of "+e.Node]; s != nil {
				s.end = e
			}
		case journal.Phase:
			switch e.Detail {
			case journal.PhaseDrain:
				h.drain = e
			case journal.PhaseDone:
				h.done = e
			}
		case journal.Write:
			t := h.task(e.ID)
			t.writes = append(t.writes, e)
		case journal.Lease:
			t := h.task(e.ID)
			t.leases = append(t.leases, e)
		case journal.Row:
			h.rows = true
			h.task(e.ID).row = e
		}
	}
	h.sort()
	return h
}

func (h *history) task(id int64) *task {
	t := h.tasks[id]
	if t == nil {
		t = &task{id: id}
		h.tasks[id] = t
	}
	return t
}

func (h *history) sort() {
	for _, t := range h.tasks {
		slices.SortStableFunc(t.writes, func(a, b *journal.Event) int { return cmp.Compare(a.Version, b.Version) })
		if s := h.saves[t.body()]; s != nil && t.exists() {
			s.stored = append(s.stored, t.id)
		}
	}
	for _, s := range h.saves {
		slices.Sort(s.stored)
	}
	h.ordered = slices.SortedFunc(maps.Values(h.tasks), func(a, b *task) int { return cmp.Compare(a.id, b.id) })
	for _, t := range h.ordered {
		for i, w := range t.writes {
			if w.Status == executing {
				h.claims = append(h.claims, claim{t, w, t.next(i), t.run(w.Version)})
			}
		}
	}
}

// byBody returns the saves in the order of their bodies.
func (h *history) byBody() []*save {
	var all []*save
	for _, body := range slices.Sorted(maps.Keys(h.saves)) {
		all = append(all, h.saves[body])
	}
	return all
}

func (t *task) exists() bool { return len(t.writes) > 0 || t.row != nil }

// first is the row as it was saved, as far as the journal shows it.
func (t *task) first() *journal.Event {
	if len(t.writes) > 0 {
		return t.writes[0]
	}
	return t.row
}

// last is the row as it stands at the end.
func (t *task) last() *journal.Event {
	if t.row != nil || len(t.writes) == 0 {
		return t.row
	}
	return t.writes[len(t.writes)-1]
}

func (t *task) body() string {
	if e := t.first(); e != nil {
		return e.Body
	}
	return ""
}

// next returns the transition after the i-th one, or nil.
func (t *task) next(i int) *journal.Event {
	if i+1 < len(t.writes) {
		return t.writes[i+1]
	}
	return nil
}

// run returns the execution of a version, nil where there was none.
func (t *task) run(version int64) *span {
	for _, r := range t.runs {
		if r.begin.Version == version {
			return r
		}
	}
	return nil
}

// shift is how far the database's clock is ahead of the journal's at an event.
func shift(e *journal.Event) time.Duration {
	if e == nil || e.Clock.IsZero() {
		return 0
	}
	return e.Clock.Sub(e.At)
}

func clock(e *journal.Event) time.Time { return e.At.Add(shift(e)) }

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

func isFinal(status string) bool {
	return status == completed || status == failed || status == cancelled
}

// The statuses of a row, as [journal.Event] writes them.
const (
	pending   = "pending"
	executing = "executing"
	completed = "completed"
	failed    = "failed"
	cancelled = "cancelled"
)
