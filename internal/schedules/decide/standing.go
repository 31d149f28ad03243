package decide

import "github.com/delaytask/delaytask/internal/row"

// mostStanding bounds how far what stands open is counted.
const mostStanding = 1000

// Behind returns how many ticks are due and not decided, up to 1,000. Ticks that wait for the run before do not count.
func Behind(st *State) int {
	p := newPlan(*st)
	if p.s.State != row.ScheduleActive || p.s.Next.IsZero() || len(st.Open) > 0 && p.s.Serial() {
		return 0
	}
	return p.dueFrom(p.s.Next)
}

// Unsuccessful returns how many ticks were due since the tick of the last run that completed, up to 1,000. While a run
// is open, its tick and later ones do not count.
func Unsuccessful(st *State) int {
	p := newPlan(*st)
	from := p.s.Success
	if from.IsZero() {
		from = p.s.Created
	}
	if p.s.State != row.ScheduleActive {
		return 0
	}
	for i := range st.Open {
		p.Now = min(p.Now, p.due(st.Open[i].Run.Tick)-1)
	}
	return p.dueFrom(p.next(from))
}

// dueFrom counts the ticks that are due, from one on.
func (p *plan) dueFrom(tick row.Time) int {
	if tick.IsZero() || p.due(tick) > p.Now {
		return 0
	}
	return min(p.count(tick, p.Now.Add(-p.jitter)), mostStanding)
}
