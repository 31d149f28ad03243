package processor

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"
)

// Registration is what a tag was registered with. Zero fields take what the scheduler was configured with.
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
}

// Registry maps tags to processors. The zero value is empty and ready; it is safe for concurrent use.
type Registry struct {
	mu    sync.RWMutex
	byTag map[string]Registration
}

// Register gives the tag its processor. It returns [ErrInvalidTag], [ErrNilProcessor] (also for a nil pointer or [Func]
// inside the interface), the error of an option, or [ErrTagRegistered], and then changes nothing.
func (r *Registry) Register(tag string, p Processor, opts ...RegisterOption) error {
	if !ValidTag(tag) {
		return fmt.Errorf("register %q: %w", tag, ErrInvalidTag)
	}
	reg, err := newRegistration(tag, p, opts)
	if err != nil {
		return fmt.Errorf("register %q: %w", tag, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, taken := r.byTag[tag]; taken {
		return fmt.Errorf("register %q: %w", tag, ErrTagRegistered)
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
		return Registration{}, ErrNilProcessor
	}
	reg := Registration{Tag: tag}
	_, reg.Forwards = p.(forwarder)
	for _, opt := range opts {
		if opt == nil {
			return Registration{}, fmt.Errorf("%w: it is nil", ErrInvalidOption)
		}
		if err := opt(&reg); err != nil {
			return Registration{}, err
		}
	}
	reg.Processor = Chain(reg.middleware...)(p)
	if isNil(reg.Processor) {
		return Registration{}, fmt.Errorf("%w: its middleware returned nil", ErrNilProcessor)
	}
	return reg, nil
}
