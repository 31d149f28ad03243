package fault

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// fall kills a member of a cluster and brings it back. Faults of its lane follow one another, so two members are there at any
// time.
type fall struct{ member int }

func (f *fall) Begin(_ context.Context, w *World, r *rand.Rand) (Scar, error) {
	f.member = r.IntN(w.Members.Size())
	return Scar{Saw: fmt.Sprint("member ", f.member)}, w.Members.Kill(f.member)
}

func (f *fall) End(_ context.Context, w *World) error { return w.Members.Rejoin(f.member) }

// stiff freezes a member of a cluster. When that lasts, the others go on without it, and it has to come back.
type stiff struct {
	member int
	frozen bool
}

// comesBack is how long a member may take that nobody helps. Then it is killed and started anew, as an operator would do.
const comesBack = time.Minute

func (f *stiff) Begin(_ context.Context, w *World, r *rand.Rand) (Scar, error) {
	f.member = r.IntN(w.Members.Size())
	err := w.Members.Freeze(f.member)
	f.frozen = err == nil
	return Scar{Saw: fmt.Sprint("member ", f.member)}, err
}

func (f *stiff) End(ctx context.Context, w *World) error {
	if !f.frozen {
		return nil
	}
	if err := w.Members.Thaw(f.member); err != nil {
		return err
	}
	away := w.Members.Await(ctx, f.member, comesBack)
	if away == nil {
		return nil
	}
	if err := errors.Join(w.Members.Kill(f.member), w.Members.Rejoin(f.member)); err != nil {
		return errors.Join(away, err)
	}
	return nil
}
