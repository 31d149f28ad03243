package fault

import (
	"context"
	"math/rand/v2"

	"github.com/delaytask/delaytask/test/chaos/fleet"
	"github.com/delaytask/delaytask/test/chaos/role"
)

// kill ends a process as a power cut would.
type kill struct {
	momentary
	role string
}

func (k kill) Begin(_ context.Context, w *World, r *rand.Rand) (Scar, error) {
	s, err := one(w, r, k.role)
	if err != nil {
		return Scar{}, err
	}
	life, err := s.Kill()
	return Scar{Target: life}, err
}

// one draws a place of the role. The first one is left alone where there are others, so that there is a process that lives all
// through a run.
func one(w *World, r *rand.Rand, name string) (*fleet.Slot, error) {
	slots := w.Fleet.Of(name)
	if len(slots) > 1 && name == role.Worker {
		slots = slots[1:]
	}
	if len(slots) == 0 {
		return nil, ErrNothing
	}
	return slots[r.IntN(len(slots))], nil
}
