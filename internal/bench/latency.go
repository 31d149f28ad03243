package bench

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/processor"
)

const nowRate = 200

var latencyNow = measurement{
	name: "latency_now.same_process", quick: true, once: true,
	figures: []figure{
		{"latency_now.p50_ms",
			"from the call of SaveDelayTask with delay 0 to the start of the processor, at 200 a second"},
		{"latency_now.p99_ms", "99 of 100 take at most"},
		{"latency_now.max_ms", "all take at most"},
	},
	takes: func(w workload) time.Duration { return onFreshTakes + w.now + time.Second },
	measure: fresh(func(ctx context.Context, r *run, d *database) error {
		p, err := r.startNow(ctx, d, true, true)
		if err != nil {
			return err
		}
		return r.addLatency("latency_now", p)
	}),
}

var latencyOther = measurement{
	name: "latency_now.other_process", quick: true, once: true,
	figures: []figure{
		{"latency_now.other_process.p50_ms", "the same when a second process saves, which serves nothing"},
		{"latency_now.other_process.p99_ms", "99 of 100 take at most"},
		{"latency_now.other_process.max_ms", "all take at most"},
	},
	takes: func(w workload) time.Duration { return onFreshTakes + w.now + 2*time.Second },
	measure: fresh(func(ctx context.Context, r *run, d *database) (err error) {
		server, err := r.startNow(ctx, d, true, false)
		if err != nil {
			return err
		}
		saver, err := r.startNow(ctx, d, false, true)
		if err == nil {
			_, err = saver.Last()
		}
		if err != nil {
			_ = server.Kill()
			return err
		}
		return r.addLatency("latency_now.other_process", server)
	}),
}

// startNow starts a process that serves, saves, or both, and returns when it is ready.
func (r *run) startNow(ctx context.Context, d *database, serving, saving bool) (*child.Process[nowEvent], error) {
	p, err := startChild[nowEvent](ctx, r, order{
		Role: "now", DSN: d.dsn, Rate: nowRate, Count: max(1, int(nowRate*r.workload.now.Seconds())),
		Serving: serving, Saving: saving,
	})
	if err != nil {
		return nil, err
	}
	p.Listen(nowLimit, func(e nowEvent) bool { return !e.Ready })
	return p, nil
}

func (r *run) addLatency(key string, p *child.Process[nowEvent]) error {
	e, err := p.Last()
	if err != nil {
		return err
	}
	if len(e.Latencies) < e.Want {
		return fmt.Errorf("%d of %d tasks that were due at once did not start within %v", e.Want-len(e.Latencies),
			e.Want, nowLimit)
	}
	r.figures.addPercentiles(key, e.Latencies, p50, p99, most)
	return nil
}

// nowEvent is written twice: when the process is ready, and at the end.
type nowEvent struct {
	Ready     bool            `json:"ready"`
	Want      int             `json:"want"`
	Latencies []time.Duration `json:"latencies"`
}

const (
	nowTag   = "bench.now"
	nowLimit = 20 * time.Second // for tasks that are due at once
)

// nowChild saves tasks that are due at once, or runs those that it or another process saves. The moment of the call
// travels in the body: processes on one machine have the same clock.
func nowChild(ctx context.Context, o order, t *child.Narrator) error {
	return o.onScheduler(ctx, delaytask.Config{}, func(s *delaytask.Scheduler) error {
		l := &latencies{starts: lateness.NewStarts(o.Count), called: make(map[int64]time.Time, o.Count)}
		if o.Serving {
			if err := errors.Join(s.Register(nowTag, l), s.Start(ctx)); err != nil {
				return err
			}
		}
		t.Tell(nowEvent{Ready: true})
		if o.Saving {
			err := pace(ctx, o.Rate, o.Count, func(ctx context.Context) error {
				_, err := s.SaveDelayTask(ctx, nowTag, stamped(time.Now()), 0)
				return err
			})
			if err != nil {
				return err
			}
		}
		if !o.Serving {
			t.Tell(nowEvent{})
			return nil
		}
		spread := time.Duration(o.Count) * time.Second / time.Duration(o.Rate)
		if err := l.starts.Wait(ctx, spread+nowLimit); err != nil {
			return err
		}
		t.Tell(nowEvent{Want: o.Count, Latencies: l.list()})
		return nil
	})
}

// stamped is a body as long as those of all other measurements.
func stamped(at time.Time) string {
	number := strconv.FormatInt(at.UnixNano(), 10)
	return number + strings.Repeat(" ", len(benchBody)-len(number))
}

// latencies is a processor that notes how long ago its tasks were saved.
type latencies struct {
	starts *lateness.Starts
	mu     sync.Mutex
	called map[int64]time.Time
}

// Process implements [processor.Processor].
func (l *latencies) Process(_ context.Context, task *processor.Task) error {
	at := time.Now()
	nano, err := strconv.ParseInt(strings.TrimSpace(string(task.Body)), 10, 64)
	if err != nil {
		return processor.Permanent(err)
	}
	l.mu.Lock()
	l.called[task.ID] = time.Unix(0, nano)
	l.mu.Unlock()
	l.starts.Add(task.ID, at)
	return nil
}

func (l *latencies) list() []time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []time.Duration
	for id, called := range l.called {
		if at, started := l.starts.First(id); started {
			all = append(all, at.Sub(called))
		}
	}
	return all
}
