package webhook

import (
	"cmp"
	"container/list"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// hosts remembers the limits of the hosts called last. Names come from tasks, so their number has a bound.
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

// forgetOldest makes room for one. Hosts that are being called stay: there are no more of them than tasks that run at
// once.
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
