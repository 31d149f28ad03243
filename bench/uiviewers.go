package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/delaytask/delaytask/bench/viewers"
	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/server"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/scheduler"
)

const (
	viewersOpenIn = 5 * time.Second  // in which all open their pages, one after the other
	viewersRest   = 15 * time.Second // for the burst of their first refreshes to pass
)

// uiViewers measures many open dashboards beside tasks that run. A turn is a pair, without them and with them.
func (o *options) uiViewers() bench.Measurement {
	return bench.Measurement{
		Name: "ui.viewers", Apart: true,
		Figures: []bench.Figure{
			{"ui.viewers.connections",
				"connections on which the dashboards have a statement under way, at most at once"},
			{"ui.viewers.queries_per_s", "statements that they send to the database"},
			{"ui.viewers.bytes_per_s", "that all viewers receive"},
			{"ui.viewers.unchanged_pct", "refreshes that are answered with 304"},
			{"ui.viewers.put_off_pct",
				"refreshes that are answered with 204: the page stays as it is until the next"},
			{"ui.viewers.failed", "refreshes that are answered with an error"},
			{"ui.viewers.refresh.p50_ms", "half of the refreshes took at most"},
			{"ui.viewers.refresh.p99_ms", "99 of 100"},
			{"ui.viewers.none.p99_ms", "start behind the due time while no dashboard is open"},
			{"ui.viewers.open.p99_ms", "the same while they are open"},
			{"ui.viewers.lateness_ratio", "the second in terms of the first, of each pair"},
		},
		Measure: o.onFilled(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
			viewing := r.Lasting(time.Minute)
			none, err := latenessOf(ctx, r, d, o.rate, viewing)
			if err != nil {
				return err
			}
			var open lateness.Judgement
			err = o.withViewers(ctx, r, d, func(ctx context.Context, seen func()) error {
				ctx, end := context.WithCancel(ctx)
				var counted sync.WaitGroup
				defer counted.Wait()
				defer end() // of no use where tasks could not be measured
				counted.Go(func() {
					if lateness.Pass(ctx, viewing) == nil {
						seen()
					}
				})
				open, err = latenessOf(ctx, r, d, o.rate, viewing)
				return err
			})
			if err != nil {
				return err
			}
			r.AddPercentiles("ui.viewers.none", none.Starts, "p99_ms")
			r.AddPercentiles("ui.viewers.open", open.Starts, "p99_ms")
			if before := lateness.Percentile(none.Starts, 99); before > 0 {
				r.Add("ui.viewers.lateness_ratio", float64(lateness.Percentile(open.Starts, 99))/float64(before))
			}
			return nil
		}),
	}
}

// withViewers calls f while the dashboards are open. f calls seen at the end of what is measured, which begins with f.
func (o *options) withViewers(
	ctx context.Context, r *bench.Runner, d *bench.Database, f func(ctx context.Context, seen func()) error,
) error {
	counter := new(viewers.Counter)
	return withDashboard(ctx, d, counter, func(ctx context.Context, root string) error {
		site, err := viewers.NewSite(root)
		if err != nil {
			return err
		}
		return o.besideViewers(ctx, r, site, func(ctx context.Context) error {
			site.Take()
			counter.Take()
			began := time.Now()
			return f(ctx, func() {
				seconds := time.Since(began).Seconds()
				addViewed(r, site.Take(), seconds)
				statements, connections := counter.Take()
				r.Add("ui.viewers.connections", float64(connections))
				r.Add("ui.viewers.queries_per_s", float64(statements)/seconds)
			})
		})
	})
}

func addViewed(r *bench.Runner, seen viewers.Refreshes, seconds float64) {
	share := func(n int) float64 { return 100 * float64(n) / float64(max(1, len(seen.Took))) }
	r.Add("ui.viewers.bytes_per_s", float64(seen.Bytes)/seconds)
	r.Add("ui.viewers.unchanged_pct", share(seen.Unchanged))
	r.Add("ui.viewers.put_off_pct", share(seen.PutOff))
	r.Add("ui.viewers.failed", float64(seen.Failed))
	r.AddPercentiles("ui.viewers.refresh", seen.Took, "p50_ms", "p99_ms")
}

// withDashboard runs the service, whose dashboard has a scheduler and a pool of its own. That one runs no task, so that
// what the dashboard sends is told from what tasks cost.
func withDashboard(
	ctx context.Context, d *bench.Database, counter *viewers.Counter, f func(ctx context.Context, root string) error,
) (err error) {
	pool, _, err := sqlstore.Connect(ctx, d.DSN, counter.Through)
	if err != nil {
		return err
	}
	defer pool.Close()
	log := slog.New(slog.DiscardHandler)
	s, err := scheduler.New(counter.LeftOut(ctx), pool.DB, scheduler.Config{Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(context.WithoutCancel(ctx))) }()
	pages := func(_ *scheduler.Scheduler, readOnly bool) (http.Handler, error) {
		return dashboard.New(s, dashboard.Options{Who: uiUser, ReadOnly: readOnly, Log: log})
	}
	serving, end := context.WithCancel(ctx)
	defer end()
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- serve(serving, d.DSN, func(root string) { ready <- root }, server.Dashboard(pages)) }()
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
func (o *options) besideViewers(
	ctx context.Context, r *bench.Runner, site *viewers.Site, f func(context.Context) error,
) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	looking, leave := context.WithCancel(ctx)
	var all, opened sync.WaitGroup
	opened.Add(o.viewers)
	for i := range o.viewers {
		all.Go(func() {
			once := sync.OnceFunc(opened.Done)
			defer once()
			if lateness.Pass(looking, r.Lasting(viewersOpenIn)*time.Duration(i)/time.Duration(o.viewers)) != nil {
				return
			}
			if err := site.View(looking, viewed(i), once); err != nil && looking.Err() == nil {
				fail(err)
			}
		})
	}
	opened.Wait()
	err := lateness.Pass(ctx, r.Lasting(viewersRest))
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
