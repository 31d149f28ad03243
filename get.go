package delaytask

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/row"
)

// Get returns a task with its body. It returns [ErrNotFound] when there is none, or when it was deleted after its retention.
func (s *Scheduler) Get(ctx context.Context, ref Ref) (Task, error) {
	if err := s.enter(ctx); err != nil {
		return Task{}, err
	}
	name, err := nameOf(ref)
	if err != nil {
		return Task{}, err
	}
	task, err := s.get(ctx, name)
	if err != nil {
		return Task{}, fmt.Errorf("get %v: %w", ref, err)
	}
	return task, nil
}

func (s *Scheduler) get(ctx context.Context, name engine.Ref) (Task, error) {
	var rows []row.Row
	var broken []row.Broken
	var err error
	if name.ID != 0 {
		rows, broken, err = s.store.Get(ctx, nil, []int64{name.ID})
	} else {
		rows, err = s.store.FindActive(ctx, nil, []row.TagKey{{Tag: name.Tag, Key: name.Key}})
	}
	if err != nil {
		return Task{}, err
	}
	found := tasksOf(rows, broken)
	if len(found) == 0 {
		return Task{}, ErrNotFound
	}
	return found[0], nil
}
