package engine

import (
	"context"

	"github.com/delaytask/delaytask/internal/row"
)

// processTask runs one task now, if it is pending: whoever has just made it due by hand need not wait for a peek. A
// task that is not pending was executed already or is being executed, and one that does not exist was purged: neither
// is an error.
func (e *Engine) processTask(ctx context.Context, id int64) error {
	rows, broken, err := e.store.Get(ctx, nil, []int64{id})
	if err != nil {
		return err
	}
	e.discard(broken)
	if len(rows) == 0 {
		e.Log.Info("task is gone", "task", id)
		return nil
	}
	r := &rows[0]
	if r.Status != row.Pending || r.Due > e.now() || !e.tags.open(r.Tag) {
		return nil
	}
	e.runqueue.AddDue([]row.Due{r.Sighting()}, false, e.now())
	return nil
}
