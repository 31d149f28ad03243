package client

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

// Receiver takes tasks by being called, instead of polling for them. It is the HTTP handler of one address of this
// program. It registers the address at the service, and runs the processors of its tags. Make it with
// [Client.Receiver].
//
// Only calls run that the service has signed with the receiver's secret. Any other call gets an answer of 4xx, and
// nothing runs. The results of processors mean what they mean everywhere: see package processor. A result other than
// success is reported by the lease token of the call, so the client needs an access token with the verbs register and
// work.
//
// The service waits for an answer as long as its push.timeout says. A processor whose task takes longer returns
// [processor.HandOver] and ends the task by its token later. A task has its ID, Tag, Body, Attempt, Version and
// Expected here, and of its headers the trace's; [Client.Get] tells the rest.
type Receiver struct {
	client   *Client
	app      string
	address  string
	secret   webhook.Secret
	ttl      time.Duration
	window   time.Duration
	registry processor.Registry

	base      context.Context // of every processor; ends when the grace has ended
	interrupt context.CancelCauseFunc
	shared    chan struct{} // slots of the tags without a concurrency of their own

	mu       sync.Mutex
	slots    map[string]chan struct{}
	stopping bool
	running  sync.WaitGroup
	changed  chan struct{} // holds one element when the tags are others than those that are registered

	started bool
	stop    sync.Once
	ended   error
	renewal context.Context // ends first, with Stop
	leave   context.CancelFunc
	renewed sync.WaitGroup
}

// ReceiverOption is a setting of [Client.Receiver]. Each may return [delaytask.ErrInvalidOption].
type ReceiverOption func(*Receiver) error

// ReceiverSecret is what the service signs calls with: "whsec_" and the base64 of 24 to 64 bytes. Give the same one to
// all programs behind one address. Default: a new random secret; a task that is called during a restart may lose an
// attempt by it.
func ReceiverSecret(secret string) ReceiverOption {
	return func(r *Receiver) (err error) {
		if r.secret, err = webhook.ParseSecret(secret); err != nil {
			return fmt.Errorf("%w: %w", delaytask.ErrInvalidOption, err)
		}
		return nil
	}
}

// ReceiverTTL is how long the service calls a receiver that has died. The registration is renewed every third of it.
// Default 30 s, 5 s to 1 h.
func ReceiverTTL(d time.Duration) ReceiverOption {
	return func(r *Receiver) error {
		r.ttl = d
		return within("TTL", d, 5*time.Second, time.Hour)
	}
}

// ReceiverWindow is how far the time of a call's signature may lie from the clock of this machine. Default 5 min, 1 s
// to 24 h.
func ReceiverWindow(d time.Duration) ReceiverOption {
	return func(r *Receiver) error {
		r.window = d
		return within("replay window", d, time.Second, 24*time.Hour)
	}
}

// Receiver returns a handler for the address, a URL at which the service reaches it. app is the application: tasks that
// were saved with one are given to its receivers only. Nothing is sent before [Receiver.Start]. It returns
// [delaytask.ErrInvalidOption].
func (c *Client) Receiver(app, address string, opts ...ReceiverOption) (*Receiver, error) {
	if !delaytask.ValidTag(app) {
		return nil, fmt.Errorf("%w: app %.140q: want 1-128 of A-Z a-z 0-9 . _ - : /", delaytask.ErrInvalidOption, app)
	}
	r := &Receiver{
		client: c, app: app, address: address, secret: webhook.NewSecret(), ttl: 30 * time.Second,
		window: 5 * time.Minute, shared: make(chan struct{}, c.concurrency), slots: map[string]chan struct{}{},
		changed: make(chan struct{}, 1),
	}
	for _, opt := range opts {
		if opt == nil {
			return nil, fmt.Errorf("%w: it is nil", delaytask.ErrInvalidOption)
		}
		if err := opt(r); err != nil {
			return nil, err
		}
	}
	r.base, r.interrupt = context.WithCancelCause(context.Background())
	r.renewal, r.leave = context.WithCancel(context.Background())
	return r, nil
}

// Use puts middleware around the processors of all tags of this receiver, as [Client.Use] does. It returns the same
// errors.
func (r *Receiver) Use(mw ...processor.Middleware) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started {
		return delaytask.ErrStarted
	}
	return r.registry.Use(mw...)
}

// Register gives a tag its processor in this receiver. It may be called before and after Start. [processor.TTR] and
// [processor.MaxAttempts] are refused with [delaytask.ErrInvalidOption]: they are given when a task is saved. Other
// errors are the errors of [Client.Register].
func (r *Receiver) Register(tag string, p processor.Processor, opts ...processor.RegisterOption) error {
	opts = append(opts[:len(opts):len(opts)], noMaxAttempts, noTTR)
	if err := r.registry.Register(tag, p, opts...); err != nil {
		return err
	}
	reg, _ := r.registry.Lookup(tag)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.slots[tag] = r.shared
	if reg.Concurrency > 0 {
		r.slots[tag] = make(chan struct{}, reg.Concurrency)
	}
	r.change()
	return nil
}

func noTTR(r *processor.Registration) error {
	if r.TTR != 0 {
		return fmt.Errorf("%w: the service holds the lease: give the TTR when a task is saved",
			delaytask.ErrInvalidOption)
	}
	return nil
}

// Unregister takes the processor of a tag away, and reports whether it had one. What runs goes on.
func (r *Receiver) Unregister(tag string) bool {
	had := r.registry.Unregister(tag)
	r.change()
	return had
}

// change lets the registration be renewed with the present tags.
func (r *Receiver) change() {
	select {
	case r.changed <- struct{}{}:
	default: // a change is pending
	}
}

// enter admits the call, unless the receiver stops.
func (r *Receiver) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		return false
	}
	r.running.Add(1)
	return true
}

const (
	// busyWait is how long a call waits for a slot, and how long the task then stays away.
	busyWait = time.Second
	// stopWait is how long a task stays away whose receiver stops. Until the service knows of the stop, it may come
	// again.
	stopWait = 100 * time.Millisecond
)

// slot waits for a free slot and returns the function that frees it.
func (r *Receiver) slot(ctx context.Context, tag string) (free func(), ok bool) {
	r.mu.Lock()
	slots := r.slots[tag]
	r.mu.Unlock()
	busy := time.NewTimer(busyWait)
	defer busy.Stop()
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, true
	case <-busy.C:
	case <-ctx.Done():
	}
	return nil, false
}

// context returns the processor's context. It ends with the timeout of the attempt, with the call, and with the grace
// of a stop.
func (r *Receiver) context(call *http.Request, reg *processor.Registration) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(call.Context()))
	stopped := context.AfterFunc(r.base, func() { cancel(context.Cause(r.base)) })
	hungUp := context.AfterFunc(call.Context(), func() { cancel(delaytask.ErrLeaseLost) })
	var stop context.CancelFunc = func() {}
	if timeout := r.client.timeoutOf(reg); timeout > 0 {
		ctx, stop = context.WithTimeoutCause(ctx, timeout, delaytask.ErrTimeout)
	}
	return ctx, func() { stopped(); hungUp(); stop(); cancel(nil) }
}

// run calls the processor and says how the attempt ends.
func (r *Receiver) run(call *http.Request, task *delaytask.Task, reg *processor.Registration) ending {
	ctx, end := r.context(call, reg)
	defer end()
	err := process(ctx, task, reg.Processor)
	return judge(task, reg, 0, err, context.Cause(ctx))
}

// report tells the service how an attempt ended, and returns whether the service knows it.
func (r *Receiver) report(t delaytask.Token, e ending) bool {
	ctx, cancel := context.WithTimeout(context.Background(), r.client.retryFor+answerWait)
	defer cancel()
	_, err := r.client.call(ctx, e.request(t))
	switch {
	case err == nil:
		return true
	case isGone(err):
		r.client.log.Warn("the result of a task is not taken: its lease was lost, or it was cancelled",
			"task", t.ID, "result", e.op)
		return true
	default:
		r.client.log.Error("the result of a task could not be reported; the answer to the call says it in short",
			"task", t.ID, "result", e.op, "err", err)
		return false
	}
}

func (r *Receiver) tags() []string { return r.registry.Tags() }

// Stop ends the receiver, started or not: the service calls it no more, and running calls may finish within the grace
// ([WithStopGrace]) or until ctx ends, whichever comes first. Then their contexts end, and their tasks are released
// without spending an attempt. Calls that still come are turned away at no attempt. Stop the HTTP server afterwards,
// and the client last. Where several programs stand behind one address, those that stay register it again within a
// third of the TTL.
//
// Calls after the first wait for it and return the same. It returns errors as [Client.Stop] does.
func (r *Receiver) Stop(ctx context.Context) error {
	if ctx == nil {
		return delaytask.ErrNilContext
	}
	r.stop.Do(func() { r.ended = r.end(ctx) })
	return r.ended
}

func (r *Receiver) end(ctx context.Context) error {
	r.mu.Lock()
	r.leave() // no renewal begins any more
	r.mu.Unlock()
	r.renewed.Wait() // its last act is to remove the registration
	r.mu.Lock()
	r.stopping = true
	r.mu.Unlock()
	err := drain(ctx, &r.running, r.client.grace, r.interrupt, func() {
		r.client.log.Error("a processor goes on although its receiver stops; its task comes back later")
	})
	r.interrupt(delaytask.ErrStopping)
	return err
}
