package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

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
	save, err := c.Check(tag, body, delay, opts)
	if err != nil {
		return saved, err
	}
	return c.put(ctx, span, tx, save)
}

// SaveChecked saves what Check has returned.
func (c *Core) SaveChecked(ctx context.Context, save delaytask.Save) (saved Saved, err error) {
	if err := c.enter(ctx); err != nil {
		return saved, err
	}
	ctx, span := c.tracing.send(ctx, save.Tag)
	defer func() { endSend(span, saved.ID, err) }()
	return c.put(ctx, span, nil, save)
}

func (c *Core) put(
	ctx context.Context, span trace.Span, tx delaytask.Tx, save delaytask.Save,
) (saved Saved, err error) {
	save.Headers = c.tracing.join(save.Headers, c.tracing.carried(ctx))
	c.tracing.noteDelay(span, &save)
	if tx != nil {
		saved.ID, err = c.engine.SaveTx(ctx, tx, save)
		return saved, err
	}
	id, stored, err := c.engine.Save(ctx, save)
	return Saved{id, stored.Rescheduled, stored.Row}, err
}

func (c *Core) Committed(ids ...int64) { c.engine.Committed(ids) }

func (c *Core) SaveDelayTasks(ctx context.Context, items []delaytask.Item) ([]delaytask.SaveResult, error) {
	return c.saveAll(ctx, len(items), func(i int) string { return items[i].Tag },
		func(i int) (delaytask.Save, error) {
			return c.Check(items[i].Tag, items[i].Body, items[i].Delay, items[i].Options)
		})
}

// SaveAllChecked is SaveDelayTasks for what Check has returned.
func (c *Core) SaveAllChecked(ctx context.Context, saves []delaytask.Save) ([]delaytask.SaveResult, error) {
	return c.saveAll(ctx, len(saves), func(i int) string { return saves[i].Tag },
		func(i int) (delaytask.Save, error) { return saves[i], nil })
}

func (c *Core) saveAll(
	ctx context.Context, n int, tagOf func(int) string, check func(int) (delaytask.Save, error),
) (results []delaytask.SaveResult, err error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	ctx, span := c.tracing.sendAll(ctx, n, tagOf)
	defer func() { endSend(span, 0, err) }()
	if n > request.MaxItems {
		return nil, fmt.Errorf("%w: got %d", delaytask.ErrBatchTooLarge, n)
	}
	carried := c.tracing.carried(ctx)
	saves := make([]delaytask.Save, n)
	for i := range saves {
		save, err := check(i)
		if err != nil {
			return nil, &delaytask.BatchError{Index: i, Err: err}
		}
		save.Headers = c.tracing.join(save.Headers, carried)
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
		return results, fmt.Errorf("%d of %d tasks were not stored, the first of them because: %w", lost, n,
			first)
	}
	return results, nil
}

// Check checks all of a save that needs no database.
func (c *Core) Check(tag string, body any, delay time.Duration, opts []delaytask.Option) (delaytask.Save, error) {
	save, err := request.NewSave(tag, body, delay, request.Limits{Body: c.bodyLimit}, opts...)
	if err == nil && save.ID != 0 && !ids.Valid(save.ID) {
		err = fmt.Errorf("%w: got %d", delaytask.ErrInvalidID, save.ID)
	}
	return save, err
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
