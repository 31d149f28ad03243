package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
)

// Saved is what is known of a saved task without a read.
type Saved struct {
	ID          int64
	Rescheduled bool // the task existed, carries the key, and has another time now
	row         *row.Row
}

// Task returns the task as it was stored, without Created and Updated, which the database sets. It is nil beside an
// error, and where a task had the id that the caller has chosen: that may be the task of an earlier save.
func (s *Saved) Task() *delaytask.TaskRow {
	if s.row == nil {
		return nil
	}
	task := taskOf(s.row)
	return &task
}

// Save saves a task, in the transaction if there is one. Beside an error of a duplicate it returns the other's id. The
// arguments of the item come one by one: in a struct the options would be allocated.
func (c *Core) Save(
	ctx context.Context, tx delaytask.Tx, tag string, body any, delay time.Duration, opts []delaytask.Option,
) (saved Saved, err error) {
	if err := c.enter(ctx); err != nil {
		return saved, err
	}
	ctx, span := c.tracing.send(ctx, tag)
	defer func() { endSend(span, saved.ID, err) }()
	save, err := c.newSave(c.tracing.carried(ctx), tag, body, delay, opts)
	if err != nil {
		return saved, err
	}
	c.tracing.noteDelay(span, &save)
	if tx != nil {
		saved.ID, err = c.engine.SaveTx(ctx, tx, save)
		return saved, err
	}
	id, stored, err := c.engine.Save(ctx, save)
	return Saved{id, stored.Rescheduled, stored.Row}, err
}

// CheckSave returns what Save would refuse an item for before it asks the database.
func (c *Core) CheckSave(item delaytask.Item) error {
	_, err := c.newSave(nil, item.Tag, item.Body, item.Delay, item.Options)
	return err
}

func (c *Core) Committed(ids ...int64) { c.engine.Committed(ids) }

func (c *Core) SaveDelayTasks(
	ctx context.Context, items []delaytask.Item,
) (results []delaytask.SaveResult, err error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	ctx, span := c.tracing.sendAll(ctx, items)
	defer func() { endSend(span, 0, err) }()
	if len(items) > request.MaxItems {
		return nil, fmt.Errorf("%w: got %d", delaytask.ErrBatchTooLarge, len(items))
	}
	carried := c.tracing.carried(ctx)
	saves := make([]delaytask.Save, len(items))
	for i, item := range items {
		save, err := c.newSave(carried, item.Tag, item.Body, item.Delay, item.Options)
		if err != nil {
			return nil, &delaytask.BatchError{Index: i, Err: err}
		}
		saves[i] = save
	}
	if results, err = c.engine.SaveAll(ctx, saves); err != nil {
		return nil, err
	}
	var lost int
	var first error
	for i := range results {
		if err := results[i].Err; err != nil && !errors.Is(err, delaytask.ErrDuplicate) {
			lost++
			if first == nil || errors.Is(first, delaytask.ErrChunkRefused) {
				first = err // rather the refusal than its consequence
			}
		}
	}
	if first != nil {
		return results, fmt.Errorf("%d of %d tasks were not stored, the first of them because: %w", lost, len(items),
			first)
	}
	return results, nil
}

// newSave checks all that can be checked without the database.
func (c *Core) newSave(
	carried propagation.MapCarrier, tag string, body any, delay time.Duration, opts []delaytask.Option,
) (delaytask.Save, error) {
	save, err := request.NewSave(tag, body, delay, request.Limits{Body: c.bodyLimit}, opts...)
	if err != nil {
		return save, err
	}
	if save.ID != 0 && !ids.Valid(save.ID) {
		return save, fmt.Errorf("%w: got %d", delaytask.ErrInvalidID, save.ID)
	}
	save.Headers = c.tracing.join(save.Headers, carried)
	return save, nil
}

// WithGlobalKey names a task in the namespace that all tags share. The key begins with "s3:", and otherwise obeys the
// rules of any other. The option returns [delaytask.ErrInvalidKey].
func WithGlobalKey(key string) delaytask.Option {
	return func(s *delaytask.Save) error {
		own, ok := strings.CutPrefix(key, row.GlobalKey)
		if !ok {
			return fmt.Errorf("%w: %.140q does not begin with %q", delaytask.ErrInvalidKey, key, row.GlobalKey)
		}
		if err := delaytask.WithKey(strings.Repeat("_", len(row.GlobalKey)) + own)(s); err != nil {
			return err
		}
		s.Key = key
		return nil
	}
}
