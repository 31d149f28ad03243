package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/dashboard"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

// uiRead is a read that people ask for. It is a figure of its own.
type uiRead struct {
	name, about string
	read        func(ctx context.Context, u *uiReader) error
}

// uiReads lists them in the order in which they are done. The next page of a list comes after its first.
var uiReads = slices.Concat(
	listed("newest", "the newest saves", delaytask.Filter{}),
	listed("pending", "pending tasks of all tags", delaytask.Filter{Status: delaytask.Pending}),
	listed("failed", "failed tasks of all tags", delaytask.Filter{Status: delaytask.Failed}),
	listed("tag", "tasks of a tag", delaytask.Filter{Tag: uiTag(7)}),
	listed("deep", "completed tasks of a tag, from the middle of its history on", delaytask.Filter{
		Tag: uiTag(7), Status: delaytask.Completed, DueBefore: time.Now().Add(-72 * time.Hour),
	}),
	listed("filtered", "failed tasks by an error that none has: 10,000 rows are looked at",
		delaytask.Filter{Status: delaytask.Failed, Error: "no such text"}),
	listed("key", "a task by tag and key, and what finished with it",
		delaytask.Filter{Tag: uiTag(7), Key: uiKey}),
	uiSingleReads,
)

// uiSingleReads are those that have no next page.
var uiSingleReads = []uiRead{
	{"get", "a task by its id", askedFor((*uiReader).Get, delaytask.ID(uiTask))},
	{"get_key", "an unfinished task by its key", askedFor((*uiReader).Get, delaytask.Key(uiTag(7), uiKey))},
	{"explain", "why a task has not run", askedFor((*uiReader).Explain, delaytask.ID(uiTask))},
	{"stats", "the statistics of all tags", asked((*uiReader).Stats)},
	{"overview", "what needs attention, as the API has it", asked((*uiReader).Overview)},
	{"series", "results and lateness of a day",
		askedFor((*uiReader).Series, report.SeriesFilter{Since: 24 * time.Hour})},
	{"forecast", "what falls due within an hour", askedFor((*uiReader).Forecast, report.ForecastFilter{})},
	{"failures", "failed tasks by their errors", askedFor((*uiReader).Failures, "")},
	{"nodes", "the processes", asked((*uiReader).Nodes)},
	{"audit", "what people have changed", askedFor((*uiReader).Audit, report.AuditFilter{})},
	{"dry_run", "a dry run of a cancel of everything",
		askedFor((*uiReader).CancelAll, delaytask.Bulk{DryRun: true})},
	{"page_overview", "the page with what needs attention", page("/")},
	{"page_tasks", "the page of failed tasks", page("/tasks?status=failed")},
	{"page_task", "the page of a task", page(fmt.Sprintf("/tasks/%d", uiTask))},
	{"page_tags", "the page of all tags", page("/tags")},
	{"page_tag", "the page of a tag", page("/tags/" + uiTag(7))},
	{"page_load", "the page of what falls due within a day", page("/load?span=24h")},
	{"page_failures", "the page of failures by their errors", page("/failures")},
	{"page_bulk", "the page that asks whether to cancel everything", page("/bulk?verb=cancel&status=pending")},
	{"page_changes", "the page of bulk changes", page("/changes")},
	{"page_nodes", "the page of processes", page("/nodes")},
	{"page_receivers", "the page of receivers", page("/receivers")},
	{"page_schedules", "the page of schedules", page("/schedules")},
	{"page_audit", "the page of what people have changed", page("/audit")},
}

// asked returns the read of a method of the scheduler.
func asked[T any](f func(*uiReader, context.Context) (T, error)) func(context.Context, *uiReader) error {
	return func(ctx context.Context, u *uiReader) error {
		_, err := f(u, ctx)
		return err
	}
}

// askedFor is asked for a method that takes an argument.
func askedFor[A, T any](
	f func(*uiReader, context.Context, A) (T, error), of A,
) func(context.Context, *uiReader) error {
	return asked(func(u *uiReader, ctx context.Context) (T, error) { return f(u, ctx, of) })
}

// uiReader is who reads: a program, and a person before the dashboard.
type uiReader struct {
	*scheduler.Scheduler
	pages http.Handler
	next  map[string]string // where the next page of a list begins, "" where no page follows
}

// withReader opens a scheduler and a dashboard on the table for the time of f.
func withReader(ctx context.Context, d *bench.Database, f func(context.Context, *uiReader) error) error {
	return d.OnScheduler(ctx, scheduler.Config{}, func(s *scheduler.Scheduler) error {
		pages, err := dashboard.New(s, dashboard.Options{Who: uiUser, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			return err
		}
		return f(ctx, &uiReader{s, pages, map[string]string{}})
	})
}

// uiUser may see everything.
func uiUser(*http.Request) (dashboard.User, error) {
	return dashboard.User{Name: "bench", Role: dashboard.Admin, Tags: []string{"*"}}, nil
}

// readAll does all reads once, one after the other, and passes how long each took.
func (u *uiReader) readAll(ctx context.Context, note func(i int, took time.Duration)) error {
	for i, read := range uiReads {
		began := time.Now()
		err := read.read(ctx, u)
		switch {
		case errors.Is(err, errNoNext):
		case err != nil:
			return fmt.Errorf("%s: %w", read.name, err)
		default:
			note(i, time.Since(began))
		}
	}
	return nil
}

// errNoNext is returned by the read of a next page that is not there.
var errNoNext = errors.New("there is no next page")

// page reads a page of the dashboard.
func page(path string) func(context.Context, *uiReader) error {
	return func(ctx context.Context, u *uiReader) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, path, nil)
		if err != nil {
			return err
		}
		w := pageStatus{header: http.Header{}}
		if u.pages.ServeHTTP(&w, r); w.status != http.StatusOK {
			return cmp.Or(context.Cause(ctx), fmt.Errorf("the page %s is answered with status %d", path, w.status))
		}
		return nil
	}
}

// pageStatus keeps the status of a page alone.
type pageStatus struct {
	header http.Header
	status int
}

func (w *pageStatus) Header() http.Header         { return w.header }
func (w *pageStatus) Write(b []byte) (int, error) { return len(b), nil }
func (w *pageStatus) WriteHeader(status int)      { w.status = status }

// listed returns the read of the first page of a list, and the read of the next page by its cursor.
func listed(name, about string, f delaytask.Filter) []uiRead {
	read := func(ctx context.Context, u *uiReader, after string) error {
		next := f
		next.After = after
		page, err := u.List(ctx, next)
		u.next[name] = page.Next
		return err
	}
	return []uiRead{
		{name, about, func(ctx context.Context, u *uiReader) error { return read(ctx, u, "") }},
		{name + "_next", "the next page of that", func(ctx context.Context, u *uiReader) error {
			if u.next[name] == "" {
				return errNoNext
			}
			return read(ctx, u, u.next[name])
		}},
	}
}

// uiReads measures reads of a large table beside tasks that run.
func (o *options) uiReads() bench.Measurement {
	m := bench.Measurement{
		Name: "ui.reads", Apart: true, Turns: 1,
		Figures: []bench.Figure{
			{"ui.alone.p99_ms", "start behind the due time while no one reads"},
			{"ui.beside_reader.p99_ms", "the same beside one reader without a pause"},
		},
		Measure: o.onFilled(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
			alone, err := latenessOf(ctx, r, d, o.rate, r.Lasting(bench.LateSpan))
			if err != nil {
				return err
			}
			r.AddPercentiles("ui.alone", alone.Starts, "p99_ms")
			return o.besideReads(ctx, r, d)
		}),
	}
	for _, read := range uiReads {
		m.Figures = append(m.Figures, bench.Figure{"ui." + read.name + ".p50_ms", read.about},
			bench.Figure{"ui." + read.name + ".p99_ms", "99 of 100"})
	}
	return m
}

// besideReads reads in turn while tasks run, and adds how long each read took and how late the tasks were.
func (o *options) besideReads(ctx context.Context, r *bench.Runner, d *bench.Database) error {
	reading, end := context.WithCancel(ctx)
	defer end()
	took := make([][]time.Duration, len(uiReads))
	done := make(chan error, 1)
	go func() {
		done <- withReader(reading, d, func(ctx context.Context, u *uiReader) (err error) {
			for err == nil && ctx.Err() == nil {
				err = u.readAll(ctx, func(i int, span time.Duration) { took[i] = append(took[i], span) })
			}
			return err
		})
	}()
	beside, err := latenessOf(ctx, r, d, o.rate, r.Lasting(bench.LateSpan))
	end()
	if reading := <-done; err == nil && !errors.Is(reading, context.Canceled) {
		err = reading
	}
	if err != nil {
		return err
	}
	r.AddPercentiles("ui.beside_reader", beside.Starts, "p99_ms")
	for i, read := range uiReads {
		if len(took[i]) > 0 {
			r.AddPercentiles("ui."+read.name, took[i], "p50_ms", "p99_ms")
		}
	}
	return nil
}

// coldReads measures what the first reader after a restart of the server waits for. The benchmark cannot restart a
// server that is not its own: its caller does, before the run.
func (o *options) coldReads() bench.Measurement {
	m := bench.Measurement{
		Name: "cold", Apart: true, Turns: 1,
		Measure: o.onFilled(func(ctx context.Context, r *bench.Runner, d *bench.Database) error {
			return withReader(ctx, d, func(ctx context.Context, u *uiReader) error {
				return u.readAll(ctx, func(i int, took time.Duration) {
					r.Add("cold."+uiReads[i].name+"_ms", bench.Milliseconds(took))
				})
			})
		}),
	}
	for _, read := range uiReads {
		m.Figures = append(m.Figures, bench.Figure{"cold." + read.name + "_ms", read.about + ", once"})
	}
	return m
}
