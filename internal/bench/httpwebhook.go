package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/bench/httpbench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/row"
)

// callTag is the service's own tag for tasks that name an address to call.
const callTag = "http"

// httpWebhookAt measures tasks that become due at a rate, from their due times to the receiver that they name.
func httpWebhookAt(rate int) measurement {
	name := fmt.Sprintf("http.webhook.%d", rate)
	return measurement{
		name: name, apart: true, once: true,
		figures: []figure{
			{name + ".p50_ms",
				fmt.Sprintf("from the due time until the call has reached a receiver here, at %d tasks a second",
					rate)},
			{name + ".p99_ms", "99 of 100 calls arrive at most so late"},
			{name + ".max_ms", "all"},
			{name + ".early", "calls that arrived before their tasks were due"},
			{name + ".lost", "tasks without a call, or not completed"},
			{name + ".duplicates", "calls beyond the first of a task"},
		},
		takes: func(w workload) time.Duration { return httpTakes + w.ahead() + w.late },
		measure: served(func(ctx context.Context, r *run, d *database, c *httpbench.Client) error {
			return r.callBack(ctx, d, c, name, rate)
		}),
	}
}

func (r *run) callBack(ctx context.Context, d *database, c *httpbench.Client, name string, rate int) error {
	if err := d.sameClock(ctx); err != nil {
		return err
	}
	pool, err := d.connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	n := max(1, int(float64(rate)*r.workload.late.Seconds()))
	seen := lateness.NewStarts(n)
	err = httpbench.Receive(ctx, seen.Add, func(url string) error {
		begin, err := saveAhead(ctx, n, r.workload.late, r.workload.ahead(), callsAt(c, url))
		if err != nil {
			return err
		}
		if err := seen.Wait(ctx, time.Until(begin)+r.workload.late+latenessLimit); err != nil {
			return err
		}
		return await(ctx, 0, func() (int, error) { return countUncalled(ctx, pool) })
	})
	if err != nil {
		return err
	}
	_, err = r.judge(ctx, d, callTag, name, seen)
	return err
}

// callsAt saves tasks that call the URL, except those that only measure how long saving takes.
func callsAt(c *httpbench.Client, url string) saveAt {
	return func(ctx context.Context, tag string, moments []time.Time) error {
		if tag == latenessTag {
			tag = callTag
		}
		tasks := make([]httpbench.Task, len(moments))
		for i, at := range moments {
			tasks[i] = httpbench.Task{Tag: tag, Body: map[string]string{"url": url, "body": httpBody}, At: at.UTC()}
		}
		return c.SaveBatch(ctx, tasks)
	}
}

// countUncalled counts the calls whose results are not in the table yet.
func countUncalled(ctx context.Context, pool *sqlx.DB) (n int, err error) {
	query := "SELECT COUNT(*) FROM delay_task_message WHERE tag = ? AND status <> ?"
	if err := pool.QueryRowContext(ctx, query, callTag, row.Completed).Scan(&n); err != nil {
		return 0, fmt.Errorf("count the calls that are not done: %w", err)
	}
	return n, nil
}
