package engine

import (
	"context"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

// adopt gives rows without a due time the one that they lack. A row that somebody's transaction holds is left for the next time,
// and holds up no other.
func (c *core) adopt(ctx context.Context, refs []row.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	err := c.store.Adopt(ctx, refs)
	if err == nil || row.ClassOf(err) != row.ClassLocked {
		return err
	}
	ids := make([]int64, len(refs))
	for i, ref := range refs {
		ids[i] = ref.ID
	}
	locked, err := c.store.Locked(ctx, ids)
	if err != nil || len(locked) == 0 {
		return err
	}
	rest := slices.DeleteFunc(slices.Clone(refs), func(ref row.Ref) bool { return slices.Contains(locked, ref.ID) })
	if len(rest) == 0 {
		return nil
	}
	return c.store.Adopt(ctx, rest)
}
