package wire

import (
	"time"

	"github.com/delaytask/delaytask"
)

// Spec says when a schedule runs.
type Spec struct {
	Lines []string `json:"lines" minItems:"1" maxItems:"16" doc:"Cron, @every 24h/2h, @at 2027-01-01T09:00; ! excludes"`
	Zone  string   `json:"zone,omitempty" doc:"A name of the IANA database such as Europe/Berlin; default: UTC"`

	DST delaytask.DST `json:"dst,omitempty"`

	Start *Moment `json:"start,omitempty" doc:"No tick is before it"`
	End   *Moment `json:"end,omitempty" doc:"No tick is after it"`
}

// Preview asks for the ticks of a spec.
type Preview struct {
	Spec
	After *Moment `json:"after,omitempty" doc:"The ticks after this moment; default: now"`
	Count int     `json:"count,omitempty" minimum:"1" maximum:"1000" doc:"How many; default 20"`
}

// Ticks has them in their order.
type Ticks struct {
	Ticks    []Tick   `json:"ticks" doc:"Fewer than count when the spec ends; those that are dropped are not counted"`
	Warnings []string `json:"warnings" doc:"What a line may mean unexpectedly"`
}

// Tick is an instant that a spec names.
type Tick struct {
	Time    Time   `json:"time"`
	Local   string `json:"local" format:"date-time" doc:"The same with the offset of the zone"`
	Note    string `json:"note,omitempty" doc:"What a clock change does to it, as moved: 02:30 does not exist"`
	Dropped bool   `json:"dropped,omitempty" doc:"It does not run: the rule dst drops it"`
}

// FromSpec is a spec in JSON.
func FromSpec(s *delaytask.Spec) Spec {
	w := Spec{Lines: s.Lines, Zone: s.Zone, DST: s.DST}
	if !s.Start.IsZero() {
		w.Start = NotBefore(s.Start)
	}
	if !s.End.IsZero() {
		w.End = (*Moment)(&s.End)
	}
	return w
}

// To is the spec as Go has it.
func (s *Spec) To() delaytask.Spec {
	spec := delaytask.Spec{Lines: s.Lines, Zone: s.Zone, DST: s.DST}
	if s.Start != nil {
		spec.Start = Bound(s.Start.Std())
	}
	if s.End != nil {
		spec.End = Bound(s.End.Std())
	}
	return spec
}

// Bound is the start or the end of a spec that is given. The zero time would be no bound, so it is moved.
func Bound(t time.Time) time.Time {
	if t.IsZero() {
		return t.Add(time.Nanosecond)
	}
	return t
}

// FromTicks is the ticks of a preview in JSON.
func FromTicks(ticks []delaytask.Tick, warnings []string) Ticks {
	return Ticks{Ticks: each(ticks, func(t *delaytask.Tick) Tick {
		return Tick{Time: Time(t.Time), Local: t.Time.Format(time.RFC3339), Note: t.Note, Dropped: t.Dropped}
	}), Warnings: append([]string{}, warnings...)}
}

// To is the ticks as Go has them: in a zone with the same offset. It returns an error for a time that cannot be read.
func (t *Ticks) To() (ticks []delaytask.Tick, warnings []string, err error) {
	for _, t := range t.Ticks {
		at, err := time.Parse(time.RFC3339, t.Local)
		if err != nil {
			return nil, nil, err
		}
		ticks = append(ticks, delaytask.Tick{Time: at, Note: t.Note, Dropped: t.Dropped})
	}
	return ticks, t.Warnings, nil
}
