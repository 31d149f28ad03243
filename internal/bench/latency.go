package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/child"
)

const nowRate = 200

var latencyNow = measurement{
	name: "latency_now.same_process", quick: true, once: true,
	figures: []figure{
		{"latency_now.p50_ms", "from the call of SaveDelayTask with delay 0 to the start of the processor, at 200 a second"},
		{"latency_now.p99_ms", "99 of 100 take at most"},
		{"latency_now.max_ms", "all take at most"},
	},
	takes: func(w workload) time.Duration { return onFreshTakes + w.now + time.Second },
	measure: func(ctx context.Context, r *run) error {
		return r.onFresh(ctx, func(ctx context.Context, d *database) error {
			p, err := r.startNow(ctx, d, true, true)
			if err != nil {
				return err
			}
			return r.addLatency("latency_now", p)
		})
	},
}

var latencyOther = measurement{
	name: "latency_now.other_process", quick: true, once: true,
	figures: []figure{
		{"latency_now.other_process.p50_ms", "the same when a second process saves, which serves nothing"},
		{"latency_now.other_process.p99_ms", "99 of 100 take at most"},
		{"latency_now.other_process.max_ms", "all take at most"},
	},
	takes: func(w workload) time.Duration { return onFreshTakes + w.now + 2*time.Second },
	measure: func(ctx context.Context, r *run) error {
		return r.onFresh(ctx, func(ctx context.Context, d *database) (err error) {
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
		})
	},
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
		return fmt.Errorf("%d of %d tasks that were due at once did not start within %v", e.Want-len(e.Latencies), e.Want, nowLimit)
	}
	r.figures.addPercentiles(key, e.Latencies, p50, p99, most)
	return nil
}
