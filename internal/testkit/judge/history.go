package judge

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
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

// decide reads a decision.
func (h *history) decide(e *journal.Event) {
	d := &decided{Event: e}
	if json.Unmarshal([]byte(e.Detail), &d.Decision) != nil {
		return // the versions then do not follow each other
	}
	s := h.calendar(e.ID)
	s.decisions = append(s.decisions, d)
	for _, r := range d.Insert {
		beside := r.TickOf.Cause == row.CauseManual && strings.HasPrefix(r.Key, decide.Key(r.TickOf.Schedule)+":")
		h.planted[r.ID] = &planted{r, d, beside}
	}
	for _, c := range d.Changes {
		if c.To == row.Cancelled {
			h.withdrawn[c.ID] = d
		}
	}
}

func (h *history) tick(e *journal.Event) {
	var r row.ScheduleRun
	if json.Unmarshal([]byte(e.Detail), &r) == nil {
		s := h.calendar(e.ID)
		s.rows = append(s.rows, r)
	}
}

func (h *history) calendar(id int64) *calendar {
	if i := slices.IndexFunc(h.calendars, func(s *calendar) bool { return s.id == id }); i >= 0 {
		return h.calendars[i]
	}
	h.calendars = append(h.calendars, &calendar{id: id})
	return h.calendars[len(h.calendars)-1]
}

// runs returns the runs of a schedule in the order of their saves.
func (h *history) runs(s *calendar) (all []*planted) {
	for _, d := range s.decisions {
		for _, r := range d.Insert {
			all = append(all, h.planted[r.ID])
		}
	}
	return all
}

// ticksOf returns false when the spec cannot be read.
func (h *history) ticksOf(s *row.Schedule) (ticks, bool) {
	sp, known := h.specs[s.Spec]
	if !known {
		sp, _ = spec.ParseText(s.Spec)
		h.specs[s.Spec] = sp
	}
	return ticks{sp, decide.Jitter(s.Name, s.Jitter)}, sp != nil
}

// isQuarantined reports whether a lost lease was what failed the task. A run that may not be retried any more is failed
// by its first loss.
func (h *history) isQuarantined(t *task) bool {
	n := len(t.writes)
	if n < 2 || t.writes[n-1].Status != failed || t.writes[n-1].CrashCount == t.writes[n-2].CrashCount {
		return false
	}
	p := h.planted[t.id]
	return p == nil || !p.TickOf.Past(row.At(clock(t.writes[n-1])))
}
