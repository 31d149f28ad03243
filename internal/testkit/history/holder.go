package history

import (
	"context"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// Claim implements [store.Leaser].
func (r *Recorder) Claim(ctx context.Context, claim row.Claim) (row.Claimed, error) {
	c := r.begin(asking(r, claim.Rows, func(ref row.Ref) journal.Event {
		return journal.Event{Kind: journal.StoreClaim, ID: ref.ID, Version: ref.Version, Executor: claim.Executor}
	}))
	claimed, err := r.Store.Claim(ctx, claim)
	if err != nil {
		c.all(failed(err))
		return claimed, err
	}
	won := map[int64]int64{}
	for i := range claimed.Rows {
		won[claimed.Rows[i].ID] = claimed.Rows[i].Version
	}
	for _, b := range claimed.Broken {
		won[b.ID] = b.Version
	}
	c.told(func(asked *journal.Event) journal.Event {
		if version, is := won[asked.ID]; is {
			return journal.Event{Version: version}
		}
		return journal.Event{Error: journal.WrongStatus}
	})
	return claimed, nil
}

// Update implements [store.Leaser]. The store tells how many changes applied, so an answer between none and all of them
// says of no task that it was changed.
func (r *Recorder) Update(ctx context.Context, tx store.Tx, changes []row.Change) (int, error) {
	bounded := map[int64]bool{} // by the end of a lease, which moves without a version
	c := r.begin(asking(r, changes, func(ch row.Change) journal.Event {
		bounded[ch.ID] = ch.LeaseOver
		return journal.Event{
			Kind: journal.StoreChange, ID: ch.ID, Version: ch.Version, Status: ch.From.String(), Executor: ch.Executor,
			Detail: ch.To.String(),
		}
	}))
	applied, err := r.Store.Update(ctx, tx, changes)
	switch {
	case err != nil:
		c.all(failed(err))
	case tx != nil:
		c.all(journal.Unknown) // the store does not learn whether it is committed
	case applied == len(changes):
		c.all(journal.OK)
	default:
		c.told(func(asked *journal.Event) journal.Event {
			if bounded[asked.ID] {
				return journal.Event{Error: journal.Unknown}
			}
			return journal.Event{Error: journal.WrongStatus}
		})
	}
	return applied, err
}

// Discard implements [store.Leaser]. It does not tell which of the rows it has met.
func (r *Recorder) Discard(ctx context.Context, broken []row.Broken) error {
	c := r.begin(asking(r, broken, func(b row.Broken) journal.Event {
		return journal.Event{
			Kind: journal.StoreChange, ID: b.ID, Version: b.Version, Status: b.Status.String(),
			Detail: row.Failed.String(),
		}
	}))
	err := r.Store.Discard(ctx, broken)
	if err != nil {
		c.all(failed(err))
	} else {
		c.all(journal.WrongStatus)
	}
	return err
}

// Renew implements [store.Leaser]. A lease that stays where it is changes nothing that is recorded.
func (r *Recorder) Renew(ctx context.Context, leases []row.Lease) ([]row.State, error) {
	var moved []row.Lease
	ids := make([]int64, len(leases))
	for i, l := range leases {
		ids[i] = l.ID
		if l.Executor != "" {
			moved = append(moved, l)
		}
	}
	c := r.begin(asking(r, moved, func(l row.Lease) journal.Event {
		return journal.Event{Kind: journal.StoreRenew, ID: l.ID, Version: l.Version, Executor: l.Executor}
	}))
	seeing := r.look(ids)
	states, err := r.Store.Renew(ctx, leases)
	seeing.saw(states, nil, err)
	if err != nil {
		c.all(failed(err))
	} else {
		c.all(journal.WrongStatus) // as it may have been: the states tell
	}
	return states, err
}
