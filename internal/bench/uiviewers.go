package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/bench/httpbench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/bench/viewers"
	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/sqlstore"
)

const (
	viewersOpenIn = 5 * time.Second  // in which all open their pages, one after the other
	viewersRest   = 15 * time.Second // for the burst of their first refreshes to pass
)

// viewing is how long open dashboards are measured.
func (w workload) viewing() time.Duration { return max(w.late, w.idle) }

// uiViewers measures many open dashboards beside tasks that run. A turn is a pair, without them and with them.
var uiViewers = measurement{
	name: "ui.viewers", apart: true,
	figures: []figure{
		{"ui.viewers.connections", "connections on which the dashboards have a statement under way, at most at once"},
		{"ui.viewers.queries_per_s", "statements that they send to the database"},
		{"ui.viewers.bytes_per_s", "that all viewers receive"},
		{"ui.viewers.unchanged_pct", "refreshes that are answered with 304"},
		{"ui.viewers.put_off_pct", "refreshes that are answered with 204: the page stays as it is until the next"},
		{"ui.viewers.failed", "refreshes that are answered with an error"},
		{"ui.viewers.refresh.p50_ms", "half of the refreshes took at most"},
		{"ui.viewers.refresh.p99_ms", "99 of 100"},
		{"ui.viewers.none.p99_ms", "start behind the due time while no dashboard is open"},
		{"ui.viewers.open.p99_ms", "the same while they are open"},
		{"ui.viewers.lateness_ratio", "the second in terms of the first, of each pair"},
	},
	takes: func(w workload) time.Duration {
		return 2*(onFreshTakes+w.ahead()+w.viewing()) + w.lasting(viewersOpenIn+viewersRest)
	},
	measure: onFilled(func(ctx context.Context, r *run, d *database) error {
		r.meta.Viewers, r.meta.Rate = r.Viewers, r.Rate
		none, err := r.latenessOver(ctx, d, r.Rate, r.workload.viewing())
		if err != nil {
			return err
		}
		var open lateness.Judgement
		err = r.withViewers(ctx, d, func(ctx context.Context, seen func()) error {
			ctx, end := context.WithCancel(ctx)
			var counted sync.WaitGroup
			defer counted.Wait()
			defer end() // of no use where tasks could not be measured
			counted.Go(func() {
				if lateness.Pass(ctx, r.workload.viewing()) == nil {
					seen()
				}
			})
			open, err = r.latenessOver(ctx, d, r.Rate, r.workload.viewing())
			return err
		})
		if err != nil {
			return err
		}
		r.figures.addPercentiles("ui.viewers.none", none.Starts, p99)
		r.figures.addPercentiles("ui.viewers.open", open.Starts, p99)
		if before := lateness.Percentile(none.Starts, 99); before > 0 {
			r.figures.add("ui.viewers.lateness_ratio",
				float64(lateness.Percentile(open.Starts, 99))/float64(before))
		}
		return nil
	}),
}

// withViewers calls f while the dashboards are open. f calls seen at the end of what is measured, which begins with f.
func (r *run) withViewers(
	ctx context.Context, d *database, f func(ctx context.Context, seen func()) error,
) error {
	counter := new(viewers.Counter)
	return r.withDashboard(ctx, d, counter, func(ctx context.Context, root string) error {
		site, err := viewers.NewSite(root)
		if err != nil {
			return err
		}
		return r.besideViewers(ctx, site, func(ctx context.Context) error {
			site.Take()
			counter.Take()
			began := time.Now()
			return f(ctx, func() {
				r.addViewed(site.Take(), time.Since(began).Seconds())
				statements, connections := counter.Take()
				r.figures.add("ui.viewers.connections", float64(connections))
				r.figures.add("ui.viewers.queries_per_s", float64(statements)/time.Since(began).Seconds())
			})
		})
	})
}

func (r *run) addViewed(seen viewers.Refreshes, seconds float64) {
	share := func(n int) float64 { return 100 * float64(n) / float64(max(1, len(seen.Took))) }
	r.figures.add("ui.viewers.bytes_per_s", float64(seen.Bytes)/seconds)
	r.figures.add("ui.viewers.unchanged_pct", share(seen.Unchanged))
	r.figures.add("ui.viewers.put_off_pct", share(seen.PutOff))
	r.figures.add("ui.viewers.failed", float64(seen.Failed))
	r.figures.addPercentiles("ui.viewers.refresh", seen.Took, p50, p99)
}

// withDashboard runs the service, whose dashboard has a scheduler and a pool of its own. That one runs no task, so that
// what the dashboard sends is told from what tasks cost.
func (r *run) withDashboard(
	ctx context.Context, d *database, counter *viewers.Counter, f func(ctx context.Context, root string) error,
) (err error) {
	pool, _, err := sqlstore.Connect(ctx, d.dsn, counter.Through)
	if err != nil {
		return err
	}
	defer pool.Close()
	s, err := delaytask.New(counter.LeftOut(ctx), pool.DB, delaytask.Config{Logger: r.Logger})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(context.WithoutCancel(ctx))) }()
	pages := func(_ *delaytask.Scheduler, readOnly bool) (http.Handler, error) {
		return dashboard.New(s, dashboard.Options{Who: uiUser, ReadOnly: readOnly, Log: r.Logger})
	}
	serving, end := context.WithCancel(ctx)
	defer end()
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- httpbench.Serve(serving, d.dsn, r.Logger, func(root string) { ready <- root },
			server.Dashboard(pages))
	}()
	select {
	case root := <-ready:
		err = f(ctx, root+"/ui/")
		end()
		return errors.Join(err, <-ended)
	case err := <-ended:
		return err
	}
}

// besideViewers calls f when all have opened their pages, and their first refreshes are over. It ends them after.
func (r *run) besideViewers(ctx context.Context, site *viewers.Site, f func(context.Context) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	looking, leave := context.WithCancel(ctx)
	var all, opened sync.WaitGroup
	opened.Add(r.Viewers)
	for i := range r.Viewers {
		all.Go(func() {
			once := sync.OnceFunc(opened.Done)
			defer once()
			turn := r.workload.lasting(viewersOpenIn) * time.Duration(i) / time.Duration(r.Viewers)
			if lateness.Pass(looking, turn) != nil {
				return
			}
			if err := site.View(looking, viewed(i), once); err != nil && looking.Err() == nil {
				fail(err)
			}
		})
	}
	opened.Wait()
	err := lateness.Pass(ctx, r.workload.lasting(viewersRest))
	if err == nil {
		err = f(ctx)
	}
	leave()
	all.Wait()
	return cmp.Or(err, context.Cause(ctx))
}

// viewed is the page of the i-th viewer: all pages, and of lists and tags many.
func viewed(i int) string {
	all := []string{
		"./", "tasks?status=pending", "tasks?status=failed", fmt.Sprintf("tasks/%d", uiTask), "tags", "load",
		"load?span=24h", "failures", "nodes", "receivers", "schedules", "audit",
	}
	tag := url.PathEscape(uiTag(i % uiTags))
	all = append(all, "tags/"+tag, "tasks?status=completed&tag="+tag, "failures?tag="+tag, "load?tag="+tag)
	return all[i%len(all)]
}
