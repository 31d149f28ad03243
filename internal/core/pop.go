package core

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
)

func (c *Core) Pop(ctx context.Context, tag string, opts ...delaytask.PopOption) ([]*delaytask.Popped, error) {
	return c.PopFor(ctx, "", nil, tag, opts...)
}

// PopFor is Pop for a caller that must leave others room. room takes some for a body of so many bytes, and reports
// whether there was any; nil: there always is. It returns [delaytask.ErrOverloaded] when a task is due and there is no
// room, and when the caller has popped too many different tags.
func (c *Core) PopFor(
	ctx context.Context, caller string, room func(bytes int) bool, tag string, opts ...delaytask.PopOption,
) ([]*delaytask.Popped, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	p, err := request.NewPop(tag, opts...)
	if err != nil {
		return nil, err
	}
	tasks, err := c.engine.Pop(ctx, lease.PopRequest{Caller: caller, Tags: p.Tags, Max: p.Max, Wait: p.Wait,
		Waits: p.Waits, TTR: p.TTR, Room: room})
	if err != nil {
		return nil, err
	}
	popped := make([]*delaytask.Popped, len(tasks))
	for i, task := range tasks {
		popped[i] = delaytask.NewPopped(*task, c)
	}
	return popped, nil
}

func (c *Core) Finish(ctx context.Context, t delaytask.Token) error {
	return c.byToken(ctx, "finish", t, c.engine.Finish)
}

func (c *Core) Release(ctx context.Context, t delaytask.Token) error {
	return c.byToken(ctx, "release", t, c.engine.Release)
}

func (c *Core) Fail(ctx context.Context, t delaytask.Token, failure error) error {
	if failure == nil {
		return fmt.Errorf("%w: the failure is nil; use Finish", delaytask.ErrInvalidOption)
	}
	return c.byToken(ctx, "fail", t, func(ctx context.Context, id, version int64) error {
		return c.engine.Fail(ctx, id, version, failure)
	})
}

func (c *Core) Touch(ctx context.Context, t delaytask.Token, ttr time.Duration) error {
	ttr, err := request.NewTouch(ttr)
	if err != nil {
		return err
	}
	return c.byToken(ctx, "touch", t, func(ctx context.Context, id, version int64) error {
		return c.engine.Touch(ctx, id, version, ttr)
	})
}

// Complete ends a pending task that has the version of the token. It returns [delaytask.ErrLeaseLost] when the task is
// not pending, or has another version by now.
func (c *Core) Complete(ctx context.Context, t delaytask.Token) error {
	return c.byToken(ctx, "complete", t, c.engine.Complete)
}

// Unclaim releases a task that was popped but not delivered to its caller. It returns errors as Release does.
func (c *Core) Unclaim(ctx context.Context, t delaytask.Token) error {
	return c.byToken(ctx, "give back", t, c.engine.Unclaim)
}

func (c *Core) byToken(
	ctx context.Context, what string, t delaytask.Token, how func(context.Context, int64, int64) error,
) error {
	if err := c.enter(ctx); err != nil {
		return err
	}
	if err := t.Check(); err != nil {
		return err
	}
	if err := how(ctx, t.ID, t.Version); err != nil {
		return fmt.Errorf("%s task %d: %w", what, t.ID, err)
	}
	return nil
}

func (c *Core) FinishAll(ctx context.Context, tokens []delaytask.Token) ([]error, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	if len(tokens) > request.MaxItems {
		return nil, fmt.Errorf("%w: got %d", delaytask.ErrBatchTooLarge, len(tokens))
	}
	answers := make([]error, len(tokens))
	var refs []row.Ref
	var places []int // of the refs in the answers
	for i, t := range tokens {
		if answers[i] = t.Check(); answers[i] == nil {
			refs, places = append(refs, row.Ref{ID: t.ID, Version: t.Version}), append(places, i)
		}
	}
	for i, err := range c.engine.FinishAll(ctx, refs) {
		if err != nil {
			answers[places[i]] = fmt.Errorf("finish task %d: %w", refs[i].ID, err)
		}
	}
	return answers, nil
}
