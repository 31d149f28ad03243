package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/bench/httpbench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
)

const (
	pullClients = 200
	pullMost    = 50
	pullWait    = 30 * time.Second
)

// httpPopAt measures tasks that become due at a rate, from their due times to the clients who wait for them.
func httpPopAt(rate int) measurement {
	name := fmt.Sprintf("http.pop.%d", rate)
	return measurement{
		name: name, apart: true, once: true,
		figures: []figure{
			{name + ".per_s", fmt.Sprintf("tasks that 200 clients get by long polls and finish, due at %d a second", rate)},
			{name + ".p50_ms", "from the due time until half of the tasks had been received"},
			{name + ".p99_ms", "99 of 100 tasks are received at most so late"},
			{name + ".max_ms", "all"},
			{name + ".early", "tasks that were received before they were due"},
			{name + ".lost", "tasks that were not received, or are not completed"},
			{name + ".duplicates", "tasks received beyond the first time"},
		},
		takes: func(w workload) time.Duration {
			return httpTakes + w.ahead() + w.late + w.lasting(time.Duration(rate)*4*time.Millisecond)
		},
		measure: func(ctx context.Context, r *run) error {
			return r.onService(ctx, func(ctx context.Context, d *database, c *httpbench.Client) error {
				return r.pull(ctx, d, c, name, rate)
			})
		},
	}
}

// pull is judged as lateness is: by the due times in the table and this machine's clock.
func (r *run) pull(ctx context.Context, d *database, c *httpbench.Client, name string, rate int) error {
	if err := d.sameClock(ctx); err != nil {
		return err
	}
	n := max(1, int(float64(rate)*r.workload.late.Seconds()))
	begin, err := saveAhead(ctx, n, r.workload.late, r.workload.ahead(), byClientAt(c))
	if err != nil {
		return err
	}
	seen := lateness.NewStarts(n)
	clients := httpbench.Pull{Tag: latenessTag, Clients: pullClients, Max: pullMost, Wait: pullWait}
	last, err := clients.Run(ctx, c, seen, time.Until(begin)+r.workload.late+latenessLimit)
	if err != nil {
		return err
	}
	j, err := r.judge(ctx, d, latenessTag, name, seen)
	if err == nil {
		r.figures.add(name+".per_s", float64(j.Once)/last.Sub(begin).Seconds())
	}
	return err
}
