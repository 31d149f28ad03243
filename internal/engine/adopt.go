package engine

import (
	"context"

	"github.com/delaytask/delaytask/internal/row"
)

// adopt gives rows without a due time the one that they lack. A row that somebody's transaction holds is left for the
// next time, and holds up no other.
func (c *core) adopt(ctx context.Context, refs []row.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	err := c.store.Adopt(ctx, refs)
	if err == nil || row.ClassOf(err) != row.ClassLocked {
		return err
	}
	locked, err := c.lockedAmong(ctx, idsOf(refs, func(ref row.Ref) int64 { return ref.ID }))
	if err != nil || len(locked) == 0 {
		return err
	}
	_, rest := split(refs, func(ref row.Ref) bool { return locked[ref.ID] })
	if len(rest) == 0 {
		return nil
	}
	return c.store.Adopt(ctx, rest)
}
