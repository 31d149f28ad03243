package fault

import (
	"context"
	"errors"
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

// stop is a deploy of one process.
type stop struct{ momentary }

func (stop) Begin(_ context.Context, w *World, r *rand.Rand) (Scar, error) {
	s, err := one(w, r, role.Worker)
	if err != nil {
		return Scar{}, err
	}
	life, err := s.Restart()
	return Scar{Target: life}, err
}

// freeze stops one worker, or all of them, for longer than their leases last.
type freeze struct {
	all    bool
	frozen []*fleet.Slot
}

func (f *freeze) Begin(_ context.Context, w *World, r *rand.Rand) (Scar, error) {
	slots := w.Fleet.Of(role.Worker)
	if !f.all {
		s, err := one(w, r, role.Worker)
		if err != nil {
			return Scar{}, err
		}
		slots = []*fleet.Slot{s}
	}
	var scar Scar
	for _, s := range slots {
		life, err := s.Freeze()
		if err != nil {
			return scar, err
		}
		f.frozen = append(f.frozen, s)
		if !f.all {
			scar.Target = life
		}
	}
	return scar, nil
}

func (f *freeze) End(context.Context, *World) error {
	var errs []error
	for _, s := range f.frozen {
		_, err := s.Thaw()
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// one draws a place of the role. The first worker is left alone where there are others, so that there is a process that lives all
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
