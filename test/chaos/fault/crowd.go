package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"

	"github.com/delaytask/delaytask/test/chaos/fleet"
)

// crowd lets many workers join at once and leave again, some of them by a power cut.
type crowd struct{ guests []*fleet.Slot }

const guests = 20

func (c *crowd) Begin(ctx context.Context, w *World, r *rand.Rand) (Scar, error) {
	for i := range guests {
		s, err := w.Invite(ctx, fmt.Sprintf("guest%d.%d", r.IntN(1e9), i))
		if err != nil {
			return Scar{}, err
		}
		c.guests = append(c.guests, s)
	}
	return Scar{Saw: fmt.Sprintf("%d workers join", guests)}, nil
}

func (c *crowd) End(context.Context, *World) error {
	errs := make([]error, len(c.guests))
	var leaving sync.WaitGroup
	for i, s := range c.guests {
		leaving.Go(func() {
			if i%4 == 0 {
				_, errs[i] = s.Kill() // another one takes the place, and leaves well
			}
			_, err := s.Leave()
			errs[i] = errors.Join(errs[i], err)
		})
	}
	leaving.Wait()
	return errors.Join(errs...)
}
