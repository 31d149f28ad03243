package webhook

import (
	"cmp"
	"container/list"
	"errors"
	"fmt"
	"log/slog"
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
	cfg     hostConfig
	limiter *rate.Limiter
	breaker *breaker

	mu      sync.Mutex
	running int
	took    time.Duration // how long a call takes, smoothed
	next    time.Time     // when the next refused task may come back
}

func newHost(key string, cfg hostConfig) *host {
	return &host{key: key, cfg: cfg, limiter: rate.NewLimiter(cfg.rate, cfg.burst), breaker: newBreaker(key, cfg)}
}

// enter never waits: a task that has to wait is snoozed, so that its slot is free for tasks of other hosts.
func (h *host) enter(now time.Time) (leave func(error), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running >= h.cfg.concurrency {
		return nil, h.snooze(ErrHostBusy, now, now)
	}
	report, err := h.breaker.allow()
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
	pace := h.took / time.Duration(h.cfg.concurrency)
	if h.cfg.rate != rate.Inf {
		pace = max(pace, time.Duration(min(float64(time.Second)/float64(h.cfg.rate), float64(longestPace))))
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

func newBreaker(key string, cfg hostConfig) *breaker {
	b := &breaker{wait: cfg.wait}
	b.steps = gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     cfg.wait,
		ReadyToTrip: func(counts gobreaker.Counts) bool { return counts.ConsecutiveFailures >= cfg.failures },
		IsExcluded:  func(err error) bool { return errors.Is(err, errNotCalled) },
		OnStateChange: func(_ string, from, to gobreaker.State) {
			if to == gobreaker.StateOpen {
				b.mu.Lock()
				b.opened = time.Now()
				b.mu.Unlock()
			}
			switch {
			case from == gobreaker.StateClosed:
				cfg.log.Warn("host does not answer; calls to it wait", "host", key, "wait", cfg.wait)
			case to == gobreaker.StateClosed:
				cfg.log.Info("host answers again", "host", key)
			}
		},
	})
	return b
}

func (b *breaker) allow() (report func(error), err error) { return b.steps.Allow() }

// reopens returns when a call is let through to see whether the host is back. It is in the past while that call runs.
func (b *breaker) reopens() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.opened.Add(b.wait + time.Millisecond) // gobreaker lets it through after, not at, the end of its wait
}

// hosts keeps the limits of the hosts called last. Names come from tasks, so their number is bounded.
type hosts struct {
	cfg hostConfig
	max int

	mu     sync.Mutex
	recent *list.List // of *host, the one called last in front
	byKey  map[string]*list.Element
}

type hostConfig struct {
	concurrency int
	rate        rate.Limit
	burst       int
	failures    uint32
	wait        time.Duration
	log         *slog.Logger
}

func newHosts(cfg Config) *hosts {
	limit, burst := rate.Inf, 0
	if cfg.HostRate > 0 {
		limit, burst = rate.Limit(cfg.HostRate), cmp.Or(cfg.HostBurst, max(int(min(cfg.HostRate, 1e6)), 1))
	}
	log := cfg.Log
	if log == nil {
		log = slog.Default()
	}
	return &hosts{
		cfg: hostConfig{
			concurrency: cfg.HostConcurrency,
			rate:        limit,
			burst:       burst,
			failures:    uint32(cmp.Or(min(cfg.BreakerFailures, 1e6), 5)),
			wait:        cmp.Or(cfg.BreakerWait, 10*time.Second),
			log:         log,
		},
		max:    cmp.Or(cfg.MaxHosts, 4096),
		recent: list.New(),
		byKey:  map[string]*list.Element{},
	}
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
	for element := h.recent.Back(); element != nil && h.recent.Len() >= h.max; {
		oldest, newer := element.Value.(*host), element.Prev()
		if oldest.idle() {
			h.recent.Remove(element)
			delete(h.byKey, oldest.key)
		}
		element = newer
	}
}
