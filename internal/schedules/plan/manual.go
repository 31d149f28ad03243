package plan

import (
	"context"

	"github.com/delaytask/delaytask/internal/row"
)

// PlanNow decides all that can be decided at this moment. It is for a caller that runs no [Planner.Loop].
func (p *Planner) PlanNow(ctx context.Context) error {
	p.Budget = 0 // the time of the caller stands still meanwhile
	seen := map[row.Ref]bool{}
	for {
		p.collectEnded(ctx)
		now, _ := p.Now()
		found, broken, err := p.Store.LookAt(ctx, now, 0, 0, page)
		if err != nil {
			return err
		}
		p.unreadable(broken)
		fresh := found[:0]
		for _, s := range found {
			if at := (row.Ref{ID: s.ID, Version: s.Version}); !seen[at] {
				seen[at] = true
				fresh = append(fresh, s)
			}
		}
		if len(fresh) == 0 {
			return nil
		}
		p.decide(ctx, fresh)
	}
}

// Apply stores a set at once, and retires what it lacks, as if no other process lived.
func (p *Planner) Apply(ctx context.Context, set Set) error {
	if set.Owner == "" {
		return nil
	}
	now, err := p.certain(ctx)
	if err != nil {
		return err
	}
	a := &assertion{Planner: p, set: set, hash: set.hash()}
	_, err = a.apply(ctx, now, true, true)
	return err
}
