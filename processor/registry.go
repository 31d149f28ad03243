package processor

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
)

// Registration is what a tag was registered with. Zero fields mean the scheduler's defaults.
type Registration struct {
	Tag         string
	Processor   Processor // with its middleware around it
	Concurrency int
	Timeout     time.Duration
	NoTimeout   bool // an attempt may take as long as it likes; Timeout is 0 then
	TTR         time.Duration
	MaxAttempts int
	Backoff     Backoff
	Forwards    bool // the processor is a [Forward]
	middleware  []Middleware
	inner       Processor // with the tag's own middleware only
}

// Registry maps tags to processors. The zero value is empty and ready; it is safe for concurrent use.
type Registry struct {
	mu         sync.RWMutex
	byTag      map[string]Registration
	middleware []Middleware // of all tags
}

// Use puts middleware around the processors of all tags, outside of their own. Tags that are registered already get it
// too. The first one is outermost, and middleware of a later call is inside. It returns [delaytask.ErrInvalidOption]
// when one of them is nil and [delaytask.ErrNilProcessor] when one returns nil, and then changes nothing.
func (r *Registry) Use(mw ...Middleware) error {
	if err := checkMiddleware(mw); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Concat(r.middleware, mw)
	wrapped := make(map[string]Registration, len(r.byTag))
	for tag, reg := range r.byTag {
		if err := reg.wrap(all); err != nil {
			return fmt.Errorf("use middleware for %q: %w", tag, err)
		}
		wrapped[tag] = reg
	}
	r.byTag, r.middleware = wrapped, all
	return nil
}

// wrap puts the middleware of all tags around the processor.
func (r *Registration) wrap(all []Middleware) error {
	p := r.inner
	for _, m := range slices.Backward(all) {
		if p = m(p); isNil(p) { // the next one would hide it
			return fmt.Errorf("%w: its middleware returned nil", delaytask.ErrNilProcessor)
		}
	}
	r.Processor = p
	return nil
}

func checkMiddleware(mw []Middleware) error {
	for _, m := range mw {
		if m == nil {
			return fmt.Errorf("%w: a middleware is nil", delaytask.ErrInvalidOption)
		}
	}
	return nil
}

// Register gives the tag its processor. It returns [delaytask.ErrInvalidTag], [delaytask.ErrNilProcessor] (also for a
// nil pointer or [Func] inside the interface), the error of an option, or [delaytask.ErrTagRegistered], and then
// changes nothing.
func (r *Registry) Register(tag string, p Processor, opts ...RegisterOption) error {
	if !delaytask.ValidTag(tag) {
		return fmt.Errorf("register %q: %w", tag, delaytask.ErrInvalidTag)
	}
	reg, err := newRegistration(tag, p, opts)
	if err != nil {
		return fmt.Errorf("register %q: %w", tag, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.byTag[tag]; taken {
		return fmt.Errorf("register %q: %w", tag, delaytask.ErrTagRegistered)
	}
	if err := reg.wrap(r.middleware); err != nil {
		return fmt.Errorf("register %q: %w", tag, err)
	}
	if r.byTag == nil {
		r.byTag = make(map[string]Registration)
	}
	r.byTag[tag] = reg
	return nil
}

// Unregister takes the tag's processor away, and reports whether it had one. The tag may be registered again.
func (r *Registry) Unregister(tag string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, had := r.byTag[tag]
	delete(r.byTag, tag)
	return had
}

// Lookup returns what the tag was registered with, and whether it was.
func (r *Registry) Lookup(tag string) (Registration, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	reg, ok := r.byTag[tag]
	return reg, ok
}

// Tags returns the registered tags, sorted.
func (r *Registry) Tags() []string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return slices.Sorted(maps.Keys(r.byTag))
}

func newRegistration(tag string, p Processor, opts []RegisterOption) (Registration, error) {
	if isNil(p) {
		return Registration{}, delaytask.ErrNilProcessor
	}
	reg := Registration{Tag: tag}
	_, reg.Forwards = p.(forwarder)
	for _, opt := range opts {
		if opt == nil {
			return Registration{}, fmt.Errorf("%w: it is nil", delaytask.ErrInvalidOption)
		}
		if err := opt(&reg); err != nil {
			return Registration{}, err
		}
	}
	reg.inner = Chain(reg.middleware...)(p)
	if isNil(reg.inner) {
		return Registration{}, fmt.Errorf("%w: its middleware returned nil", delaytask.ErrNilProcessor)
	}
	return reg, nil
}

// RegisterOption is a setting of one tag. If an option is given twice, the last one counts. [Use] adds up.
type RegisterOption func(*Registration) error

// Concurrency bounds how many tasks of the tag run at once in this process. A scheduler bounds them within its own
// concurrency. A client of the service gives them slots of their own. 0, the default, means as many as the process
// runs. A scheduler that serves several tags also keeps some slots free of each tag, whatever n is. It returns
// [delaytask.ErrInvalidOption] when n is negative.
func Concurrency(n int) RegisterOption {
	return func(r *Registration) error {
		if n < 0 {
			return fmt.Errorf("%w: concurrency %d: must not be negative", delaytask.ErrInvalidOption, n)
		}
		r.Concurrency = n
		return nil
	}
}

// Timeout bounds one attempt: its context ends after d. Negative: no bound. 0 means the scheduler's (default 5 min).
func Timeout(d time.Duration) RegisterOption {
	return func(r *Registration) error {
		r.Timeout, r.NoTimeout = max(d, 0), d < 0
		return nil
	}
}

// TTR is the lease of the tag's tasks that were saved without one of their own: how long after the death of a process
// another process takes its task. 0 means the scheduler's (default 15 s); less than 1 s is raised to 1 s. It returns
// [delaytask.ErrInvalidTTR].
func TTR(d time.Duration) RegisterOption {
	return func(r *Registration) error {
		var s delaytask.Save // the rules are the same
		err := delaytask.WithTTR(d)(&s)
		r.TTR = s.TTR
		return err
	}
}

// MaxAttempts is the number of attempts of the tag's tasks that were saved without one of their own. 0 means the
// scheduler's (default 20). It returns [delaytask.ErrInvalidMaxAttempts].
func MaxAttempts(n int) RegisterOption {
	return func(r *Registration) error {
		r.MaxAttempts = n
		return delaytask.WithMaxAttempts(n)(new(delaytask.Save))
	}
}

// RetryBackoff replaces the scheduler's backoff between the attempts of the tag's tasks. It returns
// [delaytask.ErrInvalidOption] when b is nil.
func RetryBackoff(b Backoff) RegisterOption {
	return func(r *Registration) error {
		if b == nil {
			return fmt.Errorf("%w: the backoff is nil", delaytask.ErrInvalidOption)
		}
		r.Backoff = b
		return nil
	}
}

// Use puts middleware around the processor, the first one outermost. It returns [delaytask.ErrInvalidOption] when one
// of them is nil.
func Use(mw ...Middleware) RegisterOption {
	return func(r *Registration) error {
		if err := checkMiddleware(mw); err != nil {
			return err
		}
		r.middleware = append(r.middleware, mw...)
		return nil
	}
}

// Backoff returns how long to wait after the attempt with this number (1 is the first) has failed. It must be safe for
// concurrent use. A negative duration means at once.
type Backoff func(attempt int) time.Duration

// DefaultBackoff waits 1 s, 2 s, 4 s … up to 1 h, each ± 20 %.
func DefaultBackoff(attempt int) time.Duration { return defaultBackoff(attempt) }

var defaultBackoff = Exponential(time.Second, time.Hour, 0.2)

// Exponential waits base after the first attempt and doubles the wait with each further one, up to limit. Jitter is the
// share of a wait, 0 to 1, that it is moved by at random in either direction. It is applied last, so that tasks that
// have reached the limit spread out too: the longest wait is limit × (1 + jitter). A base or limit that is not positive
// takes its default, 1 s and 1 h.
func Exponential(base, limit time.Duration, jitter float64) Backoff {
	if base <= 0 {
		base = time.Second
	}
	if limit <= 0 {
		limit = time.Hour
	}
	return func(attempt int) time.Duration {
		return spread(double(base, limit, max(attempt, 1)-1), jitter)
	}
}

// Constant waits d after every attempt.
func Constant(d time.Duration) Backoff {
	return func(int) time.Duration { return d }
}

// double stops before the shift can overflow, whatever the number of attempts.
func double(base, limit time.Duration, times int) time.Duration {
	for range times {
		if base >= limit/2 {
			return limit
		}
		base *= 2
	}
	return min(base, limit)
}

func spread(d time.Duration, jitter float64) time.Duration {
	if !(jitter > 0) { // also when it is not a number
		return d
	}
	moved := float64(d) * (1 + min(jitter, 1)*(2*rand.Float64()-1))
	return time.Duration(min(moved, float64(delaytask.MaxDelay)))
}
