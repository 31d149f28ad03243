package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/processor"
)

// process is every processor of a node.
func (l *life) process(ctx context.Context, task *delaytask.Task) error {
	w := l.world
	w.work.Add(1)
	defer w.work.Done()
	op := l.started(task, l.listener.claimedAt(task.ID))
	class, err := l.behave(ctx, task)
	w.note(l.name, journal.RunEnd, journal.Event{Op: op, ID: task.ID, Version: task.Version, Error: class})
	if class == journal.Panicked {
		panic("as its task wants it")
	}
	return err
}

// started writes down an execution, before it does anything. It was decided on at the given moment, or later.
func (l *life) started(task *delaytask.Task, decided time.Time) (op string) {
	w := l.world
	op = fmt.Sprintf("run %d", w.runs.Add(1))
	w.note(l.name, journal.RunStart, journal.Event{
		Op: op, ID: task.ID, Tag: task.Tag, Key: task.Key, Body: string(task.Body), Version: task.Version,
		Attempt: task.Attempt, Due: task.Due, Expected: task.Expected, Clock: l.listener.latestTime(decided),
		Detail: told(task),
	})
	return op
}

// told is what a processor was told of the schedule of its task.
func told(task *delaytask.Task) string {
	if task.Schedule == nil {
		return ""
	}
	return journal.Told(task.Schedule.Name, task.Schedule.Tick)
}

// subject is what behaviour depends on: the runs of a schedule share their body.
func subject(task *delaytask.Task) string { return string(task.Body) + told(task) }

var errTask = errors.New("as its task wants it")

// behave does what the seed wants of this version of the task. After the faults every task succeeds at once.
func (l *life) behave(ctx context.Context, task *delaytask.Task) (journal.Class, error) {
	w := l.world
	if w.isCalm() {
		return l.workUntil(ctx, w.pace(task), w.over)
	}
	if strings.HasPrefix(string(task.Body), poison) {
		l.crash("task " + fmt.Sprint(task.ID))
		return journal.Failed, errTask
	}
	d := w.draw("behave"+subject(task), int(task.Version))
	if isRun(task, bad) && d.chance(.4) {
		return journal.Permanent, processor.Permanent(errTask)
	}
	if isSlow(task) && d.chance(.7) {
		return l.workFor(ctx, d.between(0, 8*time.Second))
	}
	if !d.chance(w.misbehaving) {
		return l.workFor(ctx, oneOf(d, 0, d.between(0, 50*time.Millisecond), d.between(0, 500*time.Millisecond)))
	}
	switch d.IntN(11) {
	case 0, 1:
		return journal.Failed, errTask
	case 2:
		return journal.Permanent, processor.Permanent(errTask)
	case 3:
		return journal.Panicked, nil
	case 4:
		return l.workFor(ctx, time.Hour) // until its timeout
	case 5, 6: // it ignores its context
		w.rest(d.between(time.Second, 9*time.Second))
		return journal.OK, nil
	case 7:
		return journal.Snoozed, processor.Snooze(d.between(0, 3*time.Second))
	case 8:
		return journal.Failed, processor.RetryAfter(errTask, d.between(0, 2*time.Second))
	case 9:
		w.work.Go(func() { w.answer(task) })
		return journal.HandedOver, processor.HandOver(d.between(time.Second, 3*time.Second))
	default:
		return l.workFor(ctx, d.between(time.Second, 6*time.Second))
	}
}

// workFor is the work of a processor that obeys its context. It ends with the faults.
func (l *life) workFor(ctx context.Context, d time.Duration) (journal.Class, error) {
	return l.workUntil(ctx, d, l.world.calm)
}

func (l *life) workUntil(ctx context.Context, d time.Duration, ends <-chan struct{}) (journal.Class, error) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return journal.OK, nil
	case <-ends:
		return journal.OK, nil
	case <-ctx.Done():
	}
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, delaytask.ErrStopping):
		return journal.Interrupted, ctx.Err()
	case errors.Is(cause, delaytask.ErrLeaseLost):
		return journal.LeaseLost, ctx.Err()
	case errors.Is(cause, delaytask.ErrCancelled):
		return journal.Cancelled, ctx.Err()
	default:
		return journal.Failed, ctx.Err()
	}
}

// answer ends a task that was handed over, by its token, at any node; or never.
func (w *world) answer(task *delaytask.Task) {
	d := w.draw("answer"+subject(task), int(task.Version))
	if d.chance(.2) || !w.rest(d.between(0, 4*time.Second)) {
		return
	}
	_, e := w.anyLife(d)
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	w.note("holder", journal.CallFinish, journal.Event{ID: task.ID, Version: task.Version})
	err := e.Finish(ctx, task.ID, task.Version)
	w.note("holder", journal.ReturnFinish, journal.Event{ID: task.ID, Version: task.Version, Error: classOf(err)})
}

// popClient takes tasks that no processor serves, in a node.
type popClient struct {
	*life
	ctx context.Context
}

func (p *popClient) work() {
	ctx, cancel := p.world.context(p.life, time.Hour)
	defer cancel()
	p.ctx = ctx
	for n := 0; ctx.Err() == nil; n++ {
		d := p.world.draw("pop", p.slot, p.number, n)
		request := lease.PopRequest{Tags: popTags, Max: 1 + d.IntN(3), Waits: true, Wait: d.between(0, 3*time.Second)}
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
func (p *popClient) handle(task *delaytask.Task, asked time.Time) {
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
func (p *popClient) finish(op string, task *delaytask.Task, class journal.Class, end func() error) {
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
