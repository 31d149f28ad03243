package sim

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/processor"
)

// popClient takes tasks that no processor serves, in a node.
type popClient struct {
	*life
	ctx context.Context
}

func (w *world) newPopClient(l *life) *popClient { return &popClient{life: l} }

func (p *popClient) work() {
	ctx, cancel := p.world.context(p.life, time.Hour)
	defer cancel()
	p.ctx = ctx
	for n := 0; ctx.Err() == nil; n++ {
		d := p.world.draw("pop", p.slot, p.number, n)
		request := engine.PopRequest{Tags: popTags, Max: 1 + d.IntN(3), Waits: true, Wait: d.between(0, 3*time.Second)}
		if d.chance(.5) {
			request.TTR = d.between(time.Second, 4*time.Second)
		}
		asked := time.Now()
		got, err := p.engine.Pop(ctx, request)
		if err != nil && !wait(200*time.Millisecond, ctx.Done()) {
			return
		}
		for _, task := range got {
			p.handle(task, asked)
		}
		// A Pop that does not wait may return at once, each time.
		if len(got) == 0 && !wait(time.Millisecond, ctx.Done()) {
			return
		}
	}
}

// handle is what a caller does with a task that it has popped. Nothing of it counts once the node is gone. The node
// handed the task out some milliseconds before the Pop returned, and a failover may lie between.
func (p *popClient) handle(task *processor.Task, asked time.Time) {
	op := p.started(task, asked)
	d := p.world.draw("popped"+string(task.Body), int(task.Version))
	if p.world.isCalm() || !d.chance(p.world.misbehaving) {
		p.finish(op, task, journal.OK, func() error { return p.engine.Finish(p.ctx, task.ID, task.Version) })
		return
	}
	switch d.IntN(5) {
	case 0:
		p.finish(op, task, journal.Failed, func() error { return p.engine.Fail(p.ctx, task.ID, task.Version, errTask) })
	case 1:
		p.finish(op, task, journal.Released, func() error { return p.engine.Release(p.ctx, task.ID, task.Version) })
	case 2: // it is forgotten
	case 3:
		wait(d.between(0, time.Second), p.ctx.Done())
		_ = p.engine.Touch(p.ctx, task.ID, task.Version, 2*time.Second)
		wait(d.between(0, 2*time.Second), p.ctx.Done())
		p.finish(op, task, journal.OK, func() error { return p.engine.Finish(p.ctx, task.ID, task.Version) })
	default:
		p.world.rest(d.between(0, 5*time.Second)) // too late, perhaps
		p.finish(op, task, journal.OK, func() error { return p.engine.Finish(p.ctx, task.ID, task.Version) })
	}
}

// finish ends the task as told, and once more where the answer was not clear.
func (p *popClient) finish(op string, task *processor.Task, class journal.Class, end func() error) {
	p.world.note(p.name, journal.RunEnd, journal.Event{Op: op, ID: task.ID, Version: task.Version, Error: class})
	told := classOf(end())
	if told == journal.Unknown {
		told = classOf(end())
	}
	p.world.note(p.name, journal.RunTold, journal.Event{Op: op, ID: task.ID, Version: task.Version, Error: told})
}

// context ends with a life, with the world, and after d.
func (w *world) context(l *life, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	go func() {
		select {
		case <-l.gone:
		case <-w.over:
		case <-ctx.Done():
		}
		cancel()
	}()
	return ctx, cancel
}
