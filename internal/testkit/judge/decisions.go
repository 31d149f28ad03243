package judge

import (
	"time"

	"github.com/delaytask/delaytask/internal/row"
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

// ticks are a schedule's ticks, as its decision at a version counts them.
type ticks struct {
	*spec.Spec
	jitter time.Duration
}

func (t ticks) after(moment row.Time) row.Time { return row.At(t.Next(moment.Std())) }

// has reports whether the moment is a tick.
func (t ticks) has(moment row.Time) bool { return t.after(moment-1) == moment }
