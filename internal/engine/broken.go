package engine

import "github.com/delaytask/delaytask/internal/row"

// discard fails rows that cannot be decoded, each alone.
func (c *core) discard(broken []row.Broken) {
	if len(broken) == 0 {
		return
	}
	ctx, cancel := c.Call()
	defer cancel()
	if err := c.store.Discard(ctx, broken); err != nil {
		c.Failed("failing rows that cannot be decoded", err)
		return
	}
	for _, b := range broken {
		c.Log.Error("a row cannot be decoded and is set to failed; repair it and retry the task", "task", b.ID,
			"version", b.Version, "err", b.Reason)
	}
}
