package client

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/processor"
)

// attempt is a task that runs here.
type attempt struct {
	token    processor.Token
	tag      string
	ttr      time.Duration
	end      context.CancelCauseFunc
	free     func() // gives its slot to another task
	returned atomic.Bool

	// Guarded by the leases.
	until    time.Time // the lease holds for certain until then
	renewAt  time.Time
	quietAt  time.Time // from then on it is not renewed: the attempt outlived its timeout and grace; zero for never
	touching bool
}

// work runs a task and reports its result. Its slot is free when that is stored, or some time after the lease was lost to a
// processor that does not return.
func (w *worker) work(l *line, p *processor.Popped, until time.Time) {
	free := sync.OnceFunc(func() { l.put(1) })
	defer free()
	reg, known := w.registry.Lookup(p.Tag)
	if !known {
		w.report(w.reports, p.Token(), ending{op: opRelease})
		return
	}
	a := &attempt{token: p.Token(), tag: p.Tag, ttr: w.leaseOf(&reg), until: until, free: free}
	a.renewAt = earlier(time.Now().Add(a.ttr/3), until)
	ctx := w.context(a, &reg)
	w.leases.add(a)
	defer w.leases.remove(a)

	err := errGoexit
	defer func() {
		a.returned.Store(true)
		cause := context.Cause(ctx)
		a.end(nil)
		w.report(w.reports, a.token, judge(&p.Task, &reg, a.ttr, err, cause))
	}()
	err = process(ctx, &p.Task, reg.Processor)
}

// context is the processor's. It ends with the timeout of the attempt, its lease, and the grace of a stop.
func (w *worker) context(a *attempt, reg *processor.Registration) context.Context {
	ctx, end := context.WithCancelCause(w.base)
	a.end = end
	timeout := w.timeoutOf(reg)
	if timeout == 0 {
		return ctx
	}
	a.quietAt = time.Now().Add(timeout + w.grace)
	ctx, stop := context.WithTimeoutCause(ctx, timeout, processor.ErrTimeout)
	a.end = func(cause error) { end(cause); stop() }
	return ctx
}

var errGoexit = errors.New("the processor ended its goroutine with runtime.Goexit")

// process calls the processor. A panic becomes an error; a call of runtime.Goexit leaves the caller's errGoexit standing.
func process(ctx context.Context, task *processor.Task, p processor.Processor) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &processor.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return p.Process(ctx, task)
}

// outlives gives the slot of a processor that does not return to another task, after a while.
func (a *attempt) outlives(w *worker) {
	time.AfterFunc(w.grace, func() {
		if a.returned.Load() {
			return
		}
		w.log.Error("a processor goes on although its context has ended; its worker is given to another task",
			"task", a.token.ID, "tag", a.tag)
		a.free()
	})
}
