package view

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

// Ticks are those of a preview in JSON. An empty list is [].
func Ticks(ticks []delaytask.Tick, warnings []string) wire.Ticks {
	v := wire.Ticks{Ticks: make([]wire.Tick, len(ticks)), Warnings: append([]string{}, warnings...)}
	for i, t := range ticks {
		v.Ticks[i] = wire.Tick{
			Time: wire.Time(t.Time), Local: t.Time.Format(time.RFC3339), Note: t.Note, Dropped: t.Dropped,
		}
	}
	return v
}

// Spec is one of the library.
func Spec(s *wire.Spec) delaytask.Spec {
	return delaytask.Spec{
		Lines: s.Lines, Zone: s.Zone, DST: delaytask.DST(s.DST), Start: moment(s.Start), End: moment(s.End),
	}
}

func moment(m *wire.Moment) time.Time {
	if m == nil {
		return time.Time{}
	}
	return Bound(m.Std())
}

// Bound is the start or the end of a spec that is given. The zero time would be no bound, so it is moved.
func Bound(t time.Time) time.Time {
	if t.IsZero() {
		return t.Add(time.Nanosecond)
	}
	return t
}

// place says where a spec is wrong.
func place(e *delaytask.SpecError) wire.Detail {
	d := wire.Detail{Location: "body", Message: e.Reason, Line: e.Line, Column: e.Column}
	if e.Line > 0 {
		d.Location = fmt.Sprintf("body.lines[%d]", e.Line-1)
	}
	return d
}
