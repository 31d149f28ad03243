package processor

import (
	"context"
	"errors"
	"reflect"

	"github.com/delaytask/delaytask"
)

// Processor runs the tasks of one tag.
//
// A nil error completes the task. Any other error spends the attempt: the task is tried again with backoff until its
// attempts are used up, unless the error is made by [Permanent], [Snooze] or [RetryAfter]. A panic counts as an error
// and its stack is kept.
//
// The context ends when the attempt's timeout passes, when the lease is lost, when the task is cancelled, and when the
// grace of a stop ends; context.Cause tells which. A task may run more than once: make the work idempotent, or complete
// it with CompleteTx.
type Processor interface {
	Process(ctx context.Context, task *delaytask.Task) error
}

// Func lets a plain function be a [Processor].
type Func func(ctx context.Context, task *delaytask.Task) error

// Process calls f.
func (f Func) Process(ctx context.Context, task *delaytask.Task) error { return f(ctx, task) }

// Typed makes a processor of a function that takes the body decoded: the reverse of what SaveDelayTask does with a
// body. A string, a []byte and a json.RawMessage are what is stored. Everything else is decoded from JSON. A body that
// does not decode fails the task at once, with a [DecodeError]. An empty body is not JSON and does not decode.
func Typed[T any](fn func(ctx context.Context, task *delaytask.Task, body T) error) Processor {
	return typed(nil, fn)
}

func typed[T any](codec Codec, fn func(ctx context.Context, task *delaytask.Task, body T) error) Processor {
	if fn == nil {
		return nil // so that Register refuses it
	}
	return Func(func(ctx context.Context, task *delaytask.Task) error {
		body, err := decode[T](codec, task.Tag, task.Body)
		if err != nil {
			return Permanent(err)
		}
		return fn(ctx, task, body)
	})
}

// Forward wraps a processor that runs no task itself but hands each one on, for instance to a receiver on the network.
// Its tasks have not started when p is called. They start when p calls [Started], so their measured lateness includes
// the wait for a receiver, also over several attempts. A task that p completes or passes on by [HandOver] has started
// then at the latest. Register the result as it is, and pass middleware to [Use]. Forward(nil) is nil.
func Forward(p Processor) Processor {
	if isNil(p) {
		return nil
	}
	return forwarder{p}
}

type forwarder struct{ Processor }

// Started marks the task of a [Forward] as started: a receiver that can run it has it. ctx is the processor's context
// or derived from it. Only the first call counts. Started does nothing after the processor has returned, for a
// processor that is no Forward, and with any other context.
func Started(ctx context.Context) {
	if lease, ok := ctx.Value(leaseKey{}).(Lease); ok {
		lease.Started()
	}
}

// Lease is a running attempt's hold on its task.
type Lease interface {
	// CompleteTx sets the task to completed inside the caller's transaction. It returns [delaytask.ErrLeaseLost] when
	// the task is no longer held; the caller must roll back then.
	CompleteTx(ctx context.Context, tx delaytask.Tx) error
	// Started marks the task as started. Only the first call counts.
	Started()
}

// ErrNoLease is returned by [CompleteTx] when the context is not one that a processor was called with.
var ErrNoLease = errors.New("delaytask: the context belongs to no running task")

type leaseKey struct{}

// WithLease returns a context that carries the lease. The scheduler calls it; processors have no need to.
func WithLease(ctx context.Context, lease Lease) context.Context {
	return context.WithValue(ctx, leaseKey{}, lease)
}

// CompleteTx completes the running task inside the processor's own transaction on the same database: the task is
// completed if and only if the transaction commits, so that its effects there happen exactly once. ctx is the
// processor's context or derived from it. Afterwards only the row decides. If the processor returns and the row is not
// completed, because the transaction was rolled back, the attempt has failed.
//
// It returns [delaytask.ErrNilContext], [delaytask.ErrNilTx], [delaytask.ErrNoTransaction], [ErrNoLease], or
// [delaytask.ErrLeaseLost] after which the transaction must be rolled back.
func CompleteTx(ctx context.Context, tx delaytask.Tx) error {
	if ctx == nil {
		return delaytask.ErrNilContext
	}
	if isNil(tx) {
		return delaytask.ErrNilTx
	}
	lease, ok := ctx.Value(leaseKey{}).(Lease)
	if !ok {
		return ErrNoLease
	}
	return lease.CompleteTx(ctx, tx)
}

// isNil also sees a nil pointer or function inside an interface. It would otherwise panic at its first use.
func isNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Map, reflect.Slice, reflect.Chan:
		return r.IsNil()
	default:
		return false
	}
}
