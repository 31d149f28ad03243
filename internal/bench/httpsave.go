package bench

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/bench/httpbench"
)

var httpSave = measurement{
	name: "http.save", apart: true,
	figures: []figure{
		{"http.save.per_s", "tasks by 64 clients that call POST /v1/tasks one at a time"},
		{"http.save.p50_ms", "half of these calls took at most"},
		{"http.save.p99_ms", "99 of 100 of these calls took at most"},
	},
	takes: func(w workload) time.Duration { return httpTakes + w.warm + w.span },
	measure: served(func(ctx context.Context, r *run, _ *database, c *httpbench.Client) error {
		due := time.Now().Add(farDelay)
		done, err := r.warmed(ctx, saveCallers, func(ctx context.Context, _ int) (int, error) {
			return 1, c.Save(ctx, httpbench.Task{Tag: benchTag, Body: httpBody, At: due})
		})
		if err != nil {
			return err
		}
		r.figures.add("http.save.per_s", done.perSecond())
		r.figures.addPercentiles("http.save", done.calls, p50, p99)
		return nil
	}),
}

// httpBody is as long as the other bodies when it is JSON.
var httpBody = benchBody[:len(benchBody)-len(`""`)]

const batchClients = 4

var httpSaveBatch = measurement{
	name: "http.save_batch", apart: true,
	figures: []figure{{"http.save_batch.per_s",
		"tasks by 4 clients that call POST /v1/tasks/batch with 1,000 at a time"}},
	takes: func(w workload) time.Duration { return httpTakes + w.warm + w.span },
	measure: served(func(ctx context.Context, r *run, _ *database, c *httpbench.Client) error {
		save := byClientAt(c)
		moments := make([]time.Time, savedAtOnce)
		for i := range moments {
			moments[i] = time.Now().Add(farDelay)
		}
		done, err := r.warmed(ctx, batchClients, func(ctx context.Context, _ int) (int, error) {
			return savedAtOnce, save(ctx, benchTag, moments)
		})
		if err == nil {
			r.figures.add("http.save_batch.per_s", done.perSecond())
		}
		return err
	}),
}

func byClientAt(c *httpbench.Client) saveAt {
	return func(ctx context.Context, tag string, moments []time.Time) error {
		tasks := make([]httpbench.Task, len(moments))
		for i, at := range moments {
			tasks[i] = httpbench.Task{Tag: tag, Body: httpBody, At: at.UTC()}
		}
		return c.SaveBatch(ctx, tasks)
	}
}
