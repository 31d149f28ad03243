// Package lifecycle holds what the parts of a scheduler share: goroutines that are waited for, calls with a deadline,
// back-off, and a log limiter for faults that thousands of tasks meet.
package lifecycle

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
)

// Config is what a Lifecycle is made of.
type Config struct {
	Log         *slog.Logger
	Metrics     metrics.Recorder // nil for none
	CallTimeout time.Duration    // longest wait for one answer of the store
}

// Lifecycle is the life of one scheduler, shared by its parts. Make it with [New].
type Lifecycle struct {
	Log     *slog.Logger // writes a message once a second for each tag
	Metrics metrics.Recorder
	Life    context.Context // ends when the last write is done

	end     context.CancelFunc
	timeout time.Duration
	limiter logLimiter

	mu      sync.Mutex // guards what follows; innermost
	running int        // goroutines
	ended   bool
	idle    *sync.Cond // no goroutine runs
}

// New begins a life. It keeps the values of ctx and outlives it.
func New(ctx context.Context, c Config) *Lifecycle {
	l := &Lifecycle{Metrics: cmp.Or(c.Metrics, metrics.None), timeout: c.CallTimeout, limiter: newLogLimiter(c.Log)}
	l.idle = sync.NewCond(&l.mu)
	l.Log = slog.New(l.limiter)
	l.Life, l.end = context.WithCancel(context.WithoutCancel(ctx))
	return l
}

// Go starts a goroutine that [Lifecycle.End] waits for. After the end it starts none: a processor that outlasts the
// grace of a stop may still ask for one. Processors have goroutines of their own.
func (l *Lifecycle) Go(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended && l.running == 0 {
		return
	}
	l.running++
	go func() {
		defer l.leave()
		f()
	}()
}

func (l *Lifecycle) leave() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running--
	if l.running == 0 {
		l.idle.Broadcast()
	}
}

// Wait returns when all goroutines have ended.
func (l *Lifecycle) Wait() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.running > 0 {
		l.idle.Wait()
	}
}

// Abort ends the life at once, as a crash does. Nothing reaches the store afterwards.
func (l *Lifecycle) Abort() { l.end() }

// End ends the life, waits for its goroutines and writes what the log has held back.
func (l *Lifecycle) End() {
	l.end()
	l.mu.Lock()
	l.ended = true
	l.mu.Unlock()
	l.Wait()
	l.limiter.close()
}

// Call bounds one call of the store. It depends on the life alone: a write in flight goes on when its caller leaves.
func (l *Lifecycle) Call() (context.Context, context.CancelFunc) {
	return l.CallIn(l.Life)
}

// CallIn bounds one call of the store, which ends with ctx as well.
func (l *Lifecycle) CallIn(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, l.timeout)
}

// Failed counts and logs an error of the store.
func (l *Lifecycle) Failed(op string, err error) {
	class := row.ClassOf(err)
	l.Metrics.DatabaseError(class.String())
	if l.Life.Err() != nil {
		return
	}
	l.Log.Warn("the database refused or did not answer", "op", op, "class", class.String(), "err", err)
}

// Sleep waits for d, or until ctx ends; it reports whether the time has passed.
func Sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Rest is the least pause after a read that took so long: a loop of reads leaves an overloaded database four fifths of
// the time.
func Rest(took time.Duration) time.Duration { return 4 * took }

// Backoff is the wait before the n-th repetition of something the database refused: 10 ms, doubling up to 2 s, and
// jittered so that processes which failed together do not come back together.
func Backoff(n int) time.Duration {
	return Jitter(min(10*time.Millisecond<<min(n, 10), 2*time.Second), 0.5)
}

// Jitter moves d by up to the given share in both directions.
func Jitter(d time.Duration, share float64) time.Duration {
	return time.Duration(float64(d) * (1 + share*(2*rand.Float64()-1)))
}
