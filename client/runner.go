package client

import (
	"context"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

// giveBackWait is how long a stop waits for the answers to what it gives back.
const giveBackWait = 5 * time.Second

// runner runs tasks and keeps their leases.
type runner struct {
	service   *service
	registry  processor.Registry
	base      context.Context // of every processor; ends when the grace has ended
	interrupt context.CancelCauseFunc
	leases    *leases
	reporter  *reporter
	running   sync.WaitGroup
}

// newRunner returns a runner whose renewals and results end with ctx.
func newRunner(ctx context.Context, s *service) *runner {
	r := &runner{service: s, leases: newLeases(ctx, s), reporter: newReporter(ctx, s)}
	r.base, r.interrupt = context.WithCancelCause(context.Background())
	return r
}

// work runs a task and reports its result. Its slot is free when the result is stored. If the lease is lost and the
// processor does not return, it is free after a while.
func (r *runner) work(task *delaytask.Task, until time.Time, free func()) {
	free = sync.OnceFunc(free)
	defer free()
	reg, known := r.registry.Lookup(task.Tag)
	if !known {
		r.reporter.report(r.reporter.ctx, tokenOf(task), ending{op: opRelease})
		return
	}
	a := &attempt{token: tokenOf(task), tag: task.Tag, ttr: r.service.leaseOf(&reg), until: until, free: free}
	a.renewAt = earlier(time.Now().Add(a.ttr/3), until)
	ctx := r.context(a, &reg)
	r.leases.add(a)
	defer r.leases.remove(a)

	err := errGoexit
	defer func() {
		a.returned.Store(true)
		cause := context.Cause(ctx)
		a.end(nil)
		r.reporter.report(r.reporter.ctx, a.token, judge(task, &reg, a.ttr, err, cause))
	}()
	err = process(ctx, task, reg.Processor)
}

// context returns the processor's context. It ends with the attempt's timeout, its lease, and the grace of a stop.
func (r *runner) context(a *attempt, reg *processor.Registration) context.Context {
	ctx, end := context.WithCancelCause(r.base)
	a.end = end
	timeout := r.service.timeoutOf(reg)
	if timeout == 0 {
		return ctx
	}
	a.renewUntil = time.Now().Add(timeout + r.service.grace)
	ctx, stop := context.WithTimeoutCause(ctx, timeout, delaytask.ErrTimeout)
	a.end = func(cause error) { end(cause); stop() }
	return ctx
}

// abandon releases the tasks of processors that do not return.
func (r *runner) abandon() {
	ctx, cancel := context.WithTimeout(r.reporter.ctx, giveBackWait)
	defer cancel()
	var all sync.WaitGroup
	for _, a := range r.leases.held() {
		if !a.returned.Load() {
			r.service.log.Error("a processor goes on although the client stops; its task is released",
				"task", a.token.ID, "tag", a.tag)
		}
		all.Go(func() { r.reporter.report(ctx, a.token, ending{op: opRelease}) })
	}
	all.Wait()
}

// giveBack releases tasks that were not begun.
func (r *runner) giveBack(tasks []*delaytask.Task) {
	ctx, cancel := context.WithTimeout(r.reporter.ctx, giveBackWait)
	defer cancel()
	var all sync.WaitGroup
	for _, t := range tasks {
		all.Go(func() { r.reporter.report(ctx, tokenOf(t), ending{op: opRelease}) })
	}
	all.Wait()
}
