package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// comesBack is how long a member may take by itself. Then it is killed and started anew, as an operator would do.
const comesBack = time.Minute

// catchesUp is how long a member may then take to apply what it has missed, on a busy machine.
const catchesUp = 5 * time.Minute

// whole returns when all members are there, so that the next fault may take one away: two must remain at any time.
func (w *World) whole(ctx context.Context) error {
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

// degraded reports whether a member of a cluster is away, by a fault or because it was slow and the others expelled it.
// Then statements of the injector may fail.
func (w *World) degraded(ctx context.Context) bool {
	return w.Members != nil && w.Members.Whole(context.WithoutCancel(ctx)) != nil
}

// onMember kills or freezes a member of a cluster, the primary if there is one, and brings it back. During a long
// freeze the others go on without it.
func onMember(hurt, heal func(*dbtest.Cluster, int) error) Begin {
	return func(ctx context.Context, w *World, r *rand.Rand) (Residue, End, error) {
		if err := w.Members.Whole(ctx); err != nil {
			return Residue{}, w.whole, errors.Join(ErrNothing, err) // one is away by itself
		}
		var member int
		if w.Primary != nil {
			member = w.Primary()
		} else {
			member = r.IntN(w.Members.Size())
		}
		if err := hurt(w.Members, member); err != nil {
			return Residue{}, w.whole, err
		}
		return Residue{Saw: fmt.Sprint("member ", member)}, func(ctx context.Context) error {
			away := heal(w.Members, member)
			if err := w.whole(ctx); err != nil {
				return errors.Join(away, err)
			}
			return nil
		}, nil
	}
}
