package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// member is one to hurt: the primary, where there is one.
func (w *World) member(r *rand.Rand) int {
	if w.Primary != nil {
		return w.Primary()
	}
	return r.IntN(w.Members.Size())
}

// comesBack is how long a member may take that nobody helps. Then it is killed and started anew, as an operator would do.
const comesBack = time.Minute

// catchesUp is how long one may then take that applies what it has missed, while the savers go on and the machine is busy.
const catchesUp = 5 * time.Minute

// whole returns when all members are there, so that the next fault may take one away: two have to be left at any time.
func whole(ctx context.Context, w *World) error {
	away := w.Members.Await(ctx, comesBack)
	if away == nil {
		return nil
	}
	for _, member := range w.Members.Alone(ctx) {
		if err := errors.Join(w.Members.Kill(member), w.Members.Rejoin(member)); err != nil {
			away = errors.Join(away, err) // it may only be slow
		}
	}
	if err := w.Members.Await(ctx, catchesUp); err != nil {
		return errors.Join(away, err)
	}
	return nil
}

// strained tells whether a member of a cluster is away, by a fault or by itself: it was slow, and the others expelled it. What an
// injector asks for is refused then, or not answered.
func (w *World) strained(ctx context.Context) bool {
	return w.Members != nil && w.Members.Whole(context.WithoutCancel(ctx)) != nil
}

// fall kills a member of a cluster and brings it back.
type fall struct {
	member int
	down   bool
}

func (f *fall) Begin(ctx context.Context, w *World, r *rand.Rand) (Scar, error) {
	if err := w.Members.Whole(ctx); err != nil {
		return Scar{}, errors.Join(ErrNothing, err) // one is away by itself: it was slow, and the others expelled it
	}
	f.member = w.member(r)
	err := w.Members.Kill(f.member)
	f.down = err == nil
	return Scar{Saw: fmt.Sprint("member ", f.member)}, err
}

func (f *fall) End(ctx context.Context, w *World) error {
	var away error
	if f.down {
		away = w.Members.Rejoin(f.member)
	}
	if err := whole(ctx, w); err != nil {
		return errors.Join(away, err)
	}
	return nil
}

// stiff freezes a member of a cluster. When that lasts, the others go on without it, and it has to come back.
type stiff struct {
	member int
	frozen bool
}

func (f *stiff) Begin(ctx context.Context, w *World, r *rand.Rand) (Scar, error) {
	if err := w.Members.Whole(ctx); err != nil {
		return Scar{}, errors.Join(ErrNothing, err)
	}
	f.member = w.member(r)
	err := w.Members.Freeze(f.member)
	f.frozen = err == nil
	return Scar{Saw: fmt.Sprint("member ", f.member)}, err
}

func (f *stiff) End(ctx context.Context, w *World) error {
	if f.frozen {
		if err := w.Members.Thaw(f.member); err != nil {
			return err
		}
	}
	return whole(ctx, w)
}
