package engine

import (
	"context"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/save"
	"github.com/delaytask/delaytask/processor"
)

// lease is what a processor's context carries.
type lease struct {
	runner *runner
	run    *attempt
}

// CompleteTx implements [processor.Lease]. From here on the row leaves the renewal and settle batches: the caller's
// transaction holds its lock.
func (l *lease) CompleteTx(ctx context.Context, tx processor.Tx) error {
	u := l.run
	if err := save.InTransaction(ctx, l.runner.store, tx); err != nil {
		return err
	}
	now, err := l.runner.certain(ctx)
	if err != nil {
		return err
	}
	c := changeOf(&u.row, row.Completed)
	c.Due, c.Finish, c.Execution = now, now, u.firstStart()

	u.completeInTx()
	applied, err := l.runner.store.Update(ctx, tx, []row.Change{c})
	if err != nil {
		return err
	}
	if applied == 0 {
		return processor.ErrLeaseLost
	}
	return nil
}

// Started implements [processor.Lease].
func (l *lease) Started() { l.runner.start(l.run) }
