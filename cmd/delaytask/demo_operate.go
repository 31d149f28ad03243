package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/delaytask/delaytask"
)

// operate does, while the service runs, what others do: a program that speaks only SQL, a caller who saves twice, an operator.
func (p *play) operate(ctx context.Context) error {
	for i := range script {
		scene := &script[i]
		switch {
		case scene.plainSQL:
			if err := p.insert(ctx, scene); err != nil {
				return err
			}
		case scene.cancels:
			if _, err := p.operator.Cancel(ctx, p.ref(scene), delaytask.OnlyPending()); err != nil {
				return err
			}
			p.teller.cancelled(scene)
		case scene.moved != 0:
			if _, err := p.operator.Reschedule(ctx, p.ref(scene), scene.moved); err != nil {
				return err
			}
			p.teller.moved(scene)
		}
	}
	return p.saveAgain(ctx, sceneOf("order-1004"))
}

func (p *play) ref(s *scene) delaytask.Ref { return delaytask.ID(p.ids[s.Name]) }

const plainInsert = "INSERT INTO delay_task_message (tag, message_body, delay_time) VALUES (?, ?, ?)"

func (p *play) insert(ctx context.Context, s *scene) error {
	result, err := p.db.ExecContext(ctx, plainInsert, p.prefix+s.Tag, fmt.Sprintf(`{"name":%q}`, s.Name), s.Delay.Milliseconds())
	if err != nil {
		return fmt.Errorf("insert a task with plain SQL: %w", err)
	}
	if p.ids[s.Name], err = result.LastInsertId(); err != nil {
		return fmt.Errorf("learn the id of a task: %w", err)
	}
	p.teller.inserted(s)
	return nil
}

func (p *play) saveAgain(ctx context.Context, s *scene) error {
	_, err := p.operator.SaveDelayTask(ctx, p.prefix+s.Tag, "{}", s.Delay, delaytask.WithKey(s.Name))
	switch {
	case err == nil:
		return fmt.Errorf("a second task with the key %s was stored", s.Name)
	case !errors.Is(err, delaytask.ErrDuplicate):
		return err
	}
	p.refused = true
	p.teller.duplicate(s)
	return nil
}
