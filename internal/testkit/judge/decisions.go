package judge

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
	"github.com/delaytask/delaytask/internal/schedules/spec"
	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// decided is a decision about a schedule, as it was applied.
type decided struct {
	*journal.Event
	row.Decision
}

// planted is a run: a task that a decision has stored.
type planted struct {
	row.Row
	by     *decided
	beside bool // an operator allowed it to be open beside another one
}

// serial reports whether no other run of its schedule may be open with it.
func (p *planted) serial() bool { return p.by.Schedule.Serial() && !p.beside }

// calendar is everything that is known of one schedule.
type calendar struct {
	id        int64
	decisions []*decided
	rows      []row.ScheduleRun // of the history as it stands at the end
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

// ticks are a schedule's ticks, as its decision at a version counts them.
type ticks struct {
	*spec.Spec
	jitter time.Duration
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

func (t ticks) after(moment row.Time) row.Time { return row.At(t.Next(moment.Std())) }

// has reports whether the moment is a tick.
func (t ticks) has(moment row.Time) bool { return t.after(moment-1) == moment }
