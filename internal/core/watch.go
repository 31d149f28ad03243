package core

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/events"
)

func (c *Core) Wait(ctx context.Context, id int64) (delaytask.TaskRow, error) {
	if err := c.enter(ctx); err != nil {
		return delaytask.TaskRow{}, err
	}
	if _, err := nameOf(delaytask.ID(id)); err != nil {
		return delaytask.TaskRow{}, err
	}
	rows, broken, err := c.engine.WaitTask(ctx, id)
	if err != nil {
		return delaytask.TaskRow{}, fmt.Errorf("wait for %v: %w", delaytask.ID(id), err)
	}
	return c.tasksOf(ctx, rows, broken)[0], nil
}

// Subscribe returns a subscription to the events of this process.
func (c *Core) Subscribe(config delaytask.SubscribeConfig) (*events.Subscription, error) {
	if c.closed.Load() {
		return nil, delaytask.ErrClosed
	}
	config, err := config.Checked()
	if err != nil {
		return nil, err
	}
	return c.engine.Subscribe(config)
}
