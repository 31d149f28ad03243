package webhook

import (
	"container/list"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"
	"golang.org/x/time/rate"

	"github.com/delaytask/delaytask/processor"
)

const (
	shortestPace  = 10 * time.Millisecond
	longestPace   = 10 * time.Second
	longestSnooze = time.Minute
)

// host holds the state of one receiver: how many calls run, how fast they may begin, and whether it answers.
type host struct {
	key     string
	cfg     Config
	limiter *rate.Limiter
	breaker *breaker

	mu      sync.Mutex
	running int
	took    time.Duration // how long a call takes, smoothed
	next    time.Time     // when the next refused task may come back
}

func newHost(key string, cfg Config) *host {
	limit := rate.Inf
	if cfg.HostRate > 0 {
		limit = rate.Limit(cfg.HostRate)
	}
	return &host{key: key, cfg: cfg, limiter: rate.NewLimiter(limit, cfg.HostBurst), breaker: newBreaker(key, cfg)}
}

// enter never waits: a task that has to wait is snoozed, so that its slot is free for tasks of other hosts.
func (h *host) enter(now time.Time) (leave func(error), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running >= h.cfg.HostConcurrency {
		return nil, h.snooze(ErrHostBusy, now, now)
	}
	report, err := h.breaker.steps.Allow()
	if err != nil {
		return nil, h.snooze(ErrHostDown, now, h.breaker.reopens())
	}
	if !h.limiter.AllowN(now, 1) {
		report(errNotCalled)
		return nil, h.snooze(ErrHostBusy, now, now)
	}
	h.running++
	return func(result error) { h.leave(now, result, report) }, nil
}

func (h *host) leave(began time.Time, result error, report func(error)) {
	report(result)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
	h.took += (time.Since(began) - h.took) / 8
}

func (h *host) idle() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.running == 0
}

// snooze gives each refused task a time of its own, at the host's pace. If all came back at once, they would be refused
// again, at one write to the database each.
func (h *host) snooze(why error, now, earliest time.Time) error {
	pace := h.pace()
	at := later(h.next, later(earliest, now.Add(pace)))
	wait := at.Sub(now)
	if wait <= longestSnooze {
		h.next = at.Add(pace)
	} else { // more are waiting than a minute can serve: there is no order to keep among them
		wait = longestSnooze/2 + rand.N(longestSnooze/2)
	}
	return fmt.Errorf("%w: %s: %w", why, h.key, processor.Snooze(wait))
}

func (h *host) pace() time.Duration {
	pace := h.took / time.Duration(h.cfg.HostConcurrency)
	if h.cfg.HostRate > 0 {
		pace = max(pace, time.Duration(min(float64(time.Second)/h.cfg.HostRate, float64(longestPace))))
	}
	return min(max(pace, shortestPace), longestPace)
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// breaker stops calls to a host that does not answer. It wraps gobreaker's, which cannot say when it lets a call
// through again.
type breaker struct {
	steps  *gobreaker.TwoStepCircuitBreaker[struct{}]
	mu     sync.Mutex
	opened time.Time
	wait   time.Duration
}

// errNotCalled reports that a call which the breaker had allowed says nothing about the host.
var errNotCalled = errors.New("webhook: not called")

func newBreaker(key string, cfg Config) *breaker {
	b, failures := &breaker{wait: cfg.BreakerWait}, uint32(cfg.BreakerFailures)
	b.steps = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     cfg.BreakerWait,
		ReadyToTrip: func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= failures },
		IsExcluded:  func(err error) bool { return errors.Is(err, errNotCalled) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				b.mu.Lock()
				b.opened = time.Now()
				b.mu.Unlock()
			}
			switch {
			case from == gobreaker.StateClosed:
				cfg.Log.Warn("host does not answer; calls to it wait", "host", key, "wait", cfg.BreakerWait)
			case to == gobreaker.StateClosed:
				cfg.Log.Info("host answers again", "host", key)
			}
		},
	})
	return b
}

// reopens returns when a call is let through to see whether the host is back. It is in the past while that call runs.
func (b *breaker) reopens() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened.Add(b.wait + time.Millisecond) // gobreaker lets it through after, not at, the end of its wait
}

// hosts keeps the limits of the hosts called last. Names come from tasks, so their number is bounded.
type hosts struct {
	cfg Config

	mu     sync.Mutex
	recent *list.List // of *host, the one called last in front
	byKey  map[string]*list.Element
}

func newHosts(cfg Config) *hosts {
	return &hosts{cfg: cfg, recent: list.New(), byKey: map[string]*list.Element{}}
}

// enter asks the host's limits for a call. It returns the function to call with the call's result, or a snooze.
func (h *hosts) enter(key string) (leave func(error), err error) {
	return h.find(key).enter(time.Now())
}

func (h *hosts) find(key string) *host {
	h.mu.Lock()
	defer h.mu.Unlock()
	element, known := h.byKey[key]
	if !known {
		h.forgetOldest()
		element = h.recent.PushFront(newHost(key, h.cfg))
		h.byKey[key] = element
	}
	h.recent.MoveToFront(element)
	return element.Value.(*host)
}

// down asks a host's breaker. It does not make the host one that was called last.
func (h *hosts) down(key string) (again time.Time, down bool) {
	h.mu.Lock()
	element, known := h.byKey[key]
	h.mu.Unlock()
	if !known {
		return time.Time{}, false
	}
	b := element.Value.(*host).breaker
	if b.steps.State() == gobreaker.StateClosed {
		return time.Time{}, false
	}
	return b.reopens(), true
}

// forgetOldest makes room for one host. Hosts that are being called stay: there are no more of them than running tasks.
func (h *hosts) forgetOldest() {
	for element := h.recent.Back(); element != nil && h.recent.Len() >= h.cfg.MaxHosts; {
		oldest, newer := element.Value.(*host), element.Prev()
		if oldest.idle() {
			h.recent.Remove(element)
			delete(h.byKey, oldest.key)
		}
		element = newer
	}
}
