package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/delaytask/delaytask/test/chaos/fleet"
	"github.com/delaytask/delaytask/test/chaos/proxy"
)

// bad makes the network of one process bad.
type bad struct {
	what []proxy.Toxic
	hurt *proxy.Proxy
}

func (b *bad) Begin(_ context.Context, w *World, r *rand.Rand) (Scar, error) {
	return b.begin(shuffled(w, r)[0])
}

func (b *bad) begin(s *fleet.Slot) (Scar, error) {
	b.hurt = s.Proxy
	return Scar{Target: s.Life()}, b.hurt.Degrade(b.what...)
}

func (b *bad) End(context.Context, *World) error {
	if b.hurt != nil {
		b.hurt.Recover()
	}
	return nil
}

// torn resets all connections of one process, and those that it makes then, each after some bytes.
type torn struct{ bad }

const (
	tornWithin = 1500 // bytes: amid the greeting, or amid a statement or a reply
	tornIn     = 2 * time.Second
)

// Begin returns when the process has lost connections, which it shows by making new ones.
func (f *torn) Begin(ctx context.Context, w *World, r *rand.Rand) (Scar, error) {
	slot := shuffled(w, r)[0]
	before := slot.Proxy.Made()
	after := r.Int64N(tornWithin)
	f.what = []proxy.Toxic{proxy.Break(after)}
	scar, err := f.begin(slot)
	if err != nil {
		return scar, err
	}
	if !until(ctx, tornIn, func() bool { return slot.Proxy.Made() > before }) {
		return scar, ErrNothing
	}
	scar.Saw = fmt.Sprintf("after %d bytes", after)
	return scar, nil
}
