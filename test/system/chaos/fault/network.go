package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/delaytask/delaytask/test/system/chaos/fleet"
	"github.com/delaytask/delaytask/test/system/chaos/proxy"
	"github.com/delaytask/delaytask/test/system/chaos/role"
)

const lostIn = 2 * time.Second

// loss loses a statement of a process, or the reply to it.
func loss(kind proxy.Kind, loses proxy.Loss) Begin {
	sender := role.Worker
	if kind == proxy.Insert || kind == proxy.Commit {
		sender = role.Saver
	}
	return func(ctx context.Context, w *World, r *rand.Rand) (Residue, End, error) {
		slots := w.Fleet.Of(sender)
		if len(slots) == 0 {
			return Residue{}, nil, ErrNothing
		}
		p := slots[r.IntN(len(slots))].Proxy
		trap := p.Set(kind, loses, 1+r.IntN(3))
		residue := func(hit proxy.Hit) Residue {
			return Residue{IDs: hit.IDs, Saw: fmt.Sprintf("of %d tasks", len(hit.IDs))}
		}
		select {
		case hit := <-trap.Hits:
			return residue(hit), nil, nil
		case <-time.After(lostIn):
		case <-ctx.Done():
		}
		p.Unset(trap)
		select {
		case hit := <-trap.Hits: // at the last moment
			return residue(hit), nil, nil
		default:
			return Residue{}, nil, ErrNothing
		}
	}
}

// reset cuts all connections of one process with a statement under way.
func reset(_ context.Context, w *World, r *rand.Rand) (Residue, End, error) {
	for _, s := range shuffled(w, r) {
		if s.Proxy.Busy() == 0 {
			continue
		}
		if all, busy := s.Proxy.Reset(); busy > 0 {
			return Residue{Target: s.Life(), Saw: fmt.Sprintf("%d connections, %d of them busy", all, busy)}, nil, nil
		}
	}
	return Residue{}, nil, ErrNothing
}

func shuffled(w *World, r *rand.Rand) []*fleet.Slot {
	slots := everyProcess(w)
	r.Shuffle(len(slots), func(i, j int) { slots[i], slots[j] = slots[j], slots[i] })
	return slots
}

func everyProcess(w *World) []*fleet.Slot {
	return slices.Concat(w.Fleet.Of(role.Worker), w.Fleet.Of(role.Saver))
}

func cut(ctx context.Context, w *World, s *fleet.Slot) (Residue, End, error) {
	return Residue{Target: s.Life()}, func(ctx context.Context) error { return w.Join(ctx, s) }, w.Part(ctx, s)
}

func away(_ context.Context, w *World, _ *rand.Rand) (Residue, End, error) {
	for _, s := range everyProcess(w) {
		s.Proxy.Cut()
	}
	return Residue{}, func(context.Context) error {
		for _, s := range everyProcess(w) {
			s.Proxy.Heal()
		}
		return nil
	}, nil
}

func bad(what ...proxy.Toxic) Begin {
	return func(_ context.Context, w *World, r *rand.Rand) (Residue, End, error) {
		return degrade(shuffled(w, r)[0], what...)
	}
}

func degrade(s *fleet.Slot, what ...proxy.Toxic) (Residue, End, error) {
	return Residue{Target: s.Life()}, func(context.Context) error {
		s.Proxy.Recover()
		return nil
	}, s.Proxy.Degrade(what...)
}

const (
	tornWithin = 1500 // bytes: amid the greeting, or amid a statement or a reply
	tornIn     = 2 * time.Second
)

// torn resets all connections of one process, and those that it makes then, each after some bytes. It returns when the
// process has lost connections, which it shows by making new ones.
func torn(ctx context.Context, w *World, r *rand.Rand) (Residue, End, error) {
	slot := shuffled(w, r)[0]
	before, after := slot.Proxy.Made(), r.Int64N(tornWithin)
	residue, end, err := degrade(slot, proxy.Break(after))
	if err == nil && !until(ctx, tornIn, func() bool { return slot.Proxy.Made() > before }) {
		err = ErrNothing
	}
	residue.Saw = fmt.Sprintf("after %d bytes", after)
	return residue, end, err
}
