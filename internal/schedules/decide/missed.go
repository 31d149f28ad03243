package decide

import (
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// missed decides the ticks from the cursor to last, which are due and were not decided in time.
func (p *plan) missed(last row.Time) {
	if p.tooLate(&last) {
		return
	}
	switch {
	case p.s.Missed == delaytask.MissedAll:
		p.runInOrder(last)
	case p.s.Missed == delaytask.MissedSkip && p.lateness(last) > LateAfter:
		p.dropAll(last, row.OutcomeMissed, "no process decided it in time")
	case p.full():
		p.waits = true
	default:
		p.drop(last, row.OutcomeMissed, "no process decided it in time; a later tick runs")
		p.plant(last, p.cause(last), p.Now)
	}
}

// tooLate drops the ticks that may not start any more, and reports whether none is left.
func (p *plan) tooLate(last *row.Time) bool {
	if p.s.StartWithin == 0 || p.s.Parent != "" || p.lateness(p.s.Next) <= p.s.StartWithin {
		return false
	}
	end := *last
	if inTime := p.dueAfter(p.Now.Add(-p.s.StartWithin) - 1); !inTime.IsZero() && inTime <= end {
		end = p.prev(inTime)
	}
	p.dropAll(end, row.OutcomeMissed, "later than it may start")
	return p.s.Next.IsZero() || p.s.Next > *last
}

// runInOrder plants each tick, the oldest first, as far as runs may be open.
func (p *plan) runInOrder(last row.Time) {
	if p.s.Parent == "" && p.count(p.s.Next, last) > mostMissed {
		first := p.back(last, p.s.Next, mostMissed-1)
		p.dropAll(p.prev(first), row.OutcomeMissed, "only the newest 1000 missed ticks run")
	}
	for !p.s.Next.IsZero() && p.s.Next <= last {
		if p.full() {
			p.waits = true
			return
		}
		p.plant(p.s.Next, p.cause(p.s.Next), p.Now)
	}
}

// cause says of a tick that is due whether it was missed.
func (p *plan) cause(tick row.Time) row.Cause {
	if p.lateness(tick) > LateAfter {
		return row.CauseLate
	}
	return row.CauseTick
}

func (p *plan) lateness(tick row.Time) time.Duration { return p.Now.Sub(p.due(tick)) }
