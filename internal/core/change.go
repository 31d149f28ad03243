package core

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
)

// Cancel cancels a task, in the transaction if there is one.
func (c *Core) Cancel(
	ctx context.Context, tx delaytask.Tx, ref delaytask.Ref, opts ...delaytask.ChangeOption,
) (delaytask.Status, error) {
	if err := c.enter(ctx); err != nil {
		return "", err
	}
	name, err := nameOf(ref)
	if err != nil {
		return "", err
	}
	change, err := request.NewCancel(opts...)
	if err != nil {
		return "", err
	}
	name.Version = change.Version
	met, err := c.engine.Cancel(ctx, tx, name, change.OnlyPending)
	if err != nil {
		return "", fmt.Errorf("cancel %v: %w", ref, err)
	}
	return met.Text(), nil
}

// Reschedule moves a task, in the transaction if there is one.
func (c *Core) Reschedule(
	ctx context.Context, tx delaytask.Tx, ref delaytask.Ref, delay time.Duration, opts ...delaytask.ChangeOption,
) (delaytask.Status, error) {
	if err := c.enter(ctx); err != nil {
		return "", err
	}
	name, err := nameOf(ref)
	if err != nil {
		return "", err
	}
	move, err := request.NewReschedule(delay, request.Limits{Body: c.bodyLimit}, opts...)
	if err != nil {
		return "", err
	}
	name.Version = move.Version
	met, err := c.engine.Reschedule(ctx, tx, name, move.Delay, move.At, move.Body)
	if err != nil {
		return "", fmt.Errorf("reschedule %v: %w", ref, err)
	}
	return met.Text(), nil
}

func (c *Core) Retry(ctx context.Context, ref delaytask.Ref) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	name, err := nameOf(ref)
	if err != nil {
		return err
	}
	if err := c.engine.Retry(ctx, name); err != nil {
		return fmt.Errorf("retry %v: %w", ref, err)
	}
	return nil
}

func (c *Core) SetBody(
	ctx context.Context, ref delaytask.Ref, body any, opts ...delaytask.ChangeOption,
) (delaytask.Status, error) {
	if err := c.enter(ctx); err != nil {
		return "", err
	}
	name, err := nameOf(ref)
	if err != nil {
		return "", err
	}
	edit, err := request.NewSetBody(body, request.Limits{Body: c.bodyLimit}, opts...)
	if err != nil {
		return "", err
	}
	name.Version = edit.Version
	met, err := c.engine.SetBody(ctx, name, edit.Body)
	if err != nil {
		return "", fmt.Errorf("set the body of %v: %w", ref, err)
	}
	return met.Text(), nil
}

func (c *Core) CancelAll(ctx context.Context, b delaytask.Bulk) (delaytask.BulkResult, error) {
	return c.changeAll(ctx, b, row.Pending, "cancel", c.engine.CancelWhere)
}

func (c *Core) RetryAll(ctx context.Context, b delaytask.Bulk) (delaytask.BulkResult, error) {
	return c.changeAll(ctx, b, row.Failed, "retry", c.engine.RetryWhere)
}

func (c *Core) changeAll(
	ctx context.Context, b delaytask.Bulk, from row.Status, op string,
	change func(context.Context, control.Bulk) (int, bool, error),
) (result delaytask.BulkResult, err error) {
	if err := c.enter(ctx); err != nil {
		return result, err
	}
	if b.Filter.Status == "" {
		b.Filter.Status = from.Text()
	}
	if b.Filter.After != "" { // the rest of a list in another order is other tasks
		return result, fmt.Errorf("%w: After: a change of all tasks that match has no pages",
			delaytask.ErrInvalidOption)
	}
	query, err := queryOf(&b.Filter, 0)
	if err != nil {
		return result, err
	}
	asOf := bound(b.AsOf)
	if asOf.IsZero() {
		reading, err := c.store.Now(ctx)
		if err != nil {
			return result, fmt.Errorf("read the database's clock: %w", err)
		}
		asOf = reading.Time
	}
	query.LateAt, query.CreatedBy = asOf, asOf
	if from.Final() && (query.To.IsZero() || query.To > asOf) { // the due time of a final task is when it finished
		query.To = asOf + 1
	}
	n, capped, err := change(ctx, control.Bulk{Query: query, DryRun: b.DryRun, Progress: b.Progress})
	result = delaytask.BulkResult{Tasks: n, Capped: capped, AsOf: asOf.Std()}
	if err != nil {
		return result, fmt.Errorf("%s tasks: %w", op, err)
	}
	return result, nil
}
