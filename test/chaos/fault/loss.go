package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/delaytask/delaytask/test/chaos/fleet"
	"github.com/delaytask/delaytask/test/chaos/proxy"
	"github.com/delaytask/delaytask/test/chaos/role"
)

// loss loses the reply to a statement, or the statement.
type loss struct {
	momentary
	kind  proxy.Kind
	loses proxy.Loss
}

// lostIn is how long a trap waits for its statement.
const lostIn = 2 * time.Second

func (l loss) Begin(ctx context.Context, w *World, r *rand.Rand) (Scar, error) {
	slots := w.Fleet.Of(l.role())
	if len(slots) == 0 {
		return Scar{}, ErrNothing
	}
	p := slots[r.IntN(len(slots))].Proxy
	trap := p.Set(l.kind, l.loses, 1+r.IntN(3))
	overdue := time.After(lostIn)
	select {
	case hit := <-trap.Hits:
		return l.scar(hit), nil
	case <-overdue:
	case <-ctx.Done():
	}
	p.Unset(trap)
	select {
	case hit := <-trap.Hits: // at the last moment
		return l.scar(hit), nil
	default:
		return Scar{}, ErrNothing
	}
}

func (l loss) scar(h proxy.Hit) Scar {
	return Scar{IDs: h.IDs, Saw: fmt.Sprintf("of %d tasks", len(h.IDs))}
}

// role is who sends such statements.
func (l loss) role() string {
	if l.kind == proxy.Insert || l.kind == proxy.Commit {
		return role.Saver
	}
	return role.Worker
}

// reset cuts all connections of one process with a statement under way.
type reset struct{ momentary }

func (reset) Begin(_ context.Context, w *World, r *rand.Rand) (Scar, error) {
	for _, s := range shuffled(w, r) {
		if s.Proxy.Busy() == 0 {
			continue
		}
		if all, busy := s.Proxy.Reset(); busy > 0 {
			return Scar{Target: s.Life(), Saw: fmt.Sprintf("%d connections, %d of them busy", all, busy)}, nil
		}
	}
	return Scar{}, ErrNothing
}

func shuffled(w *World, r *rand.Rand) []*fleet.Slot {
	slots := slices.Concat(w.Fleet.Of(role.Worker), w.Fleet.Of(role.Saver))
	r.Shuffle(len(slots), func(i, j int) { slots[i], slots[j] = slots[j], slots[i] })
	return slots
}

// cut parts one process from the database while all others keep it.
type cut struct{ hurt *fleet.Slot }

func (c *cut) Begin(ctx context.Context, w *World, r *rand.Rand) (Scar, error) {
	s, err := one(w, r, role.Worker)
	if err != nil {
		return Scar{}, err
	}
	c.hurt = s
	return Scar{Target: s.Life()}, w.Part(ctx, s)
}

func (c *cut) End(ctx context.Context, w *World) error {
	if c.hurt == nil {
		return nil
	}
	return w.Join(ctx, c.hurt)
}
