package api

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/metrics"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

// calls makes every call that takes a context.
func calls(ctx context.Context, s form) map[string]error {
	errs, token := map[string]error{}, delaytask.Token{ID: 1, Version: 1}
	ref := delaytask.ID(1)
	_, errs["SaveDelayTask"] = s.SaveDelayTask(ctx, "t", 1, 0)
	_, errs["SaveDelayTasks"] = s.SaveDelayTasks(ctx, []delaytask.Item{{Tag: "t"}})
	_, errs["Cancel"] = s.Cancel(ctx, ref)
	_, errs["Reschedule"] = s.Reschedule(ctx, ref, 0)
	_, errs["SetBody"] = s.SetBody(ctx, ref, 1)
	_, errs["Get"] = s.Get(ctx, ref)
	_, errs["List"] = s.List(ctx, delaytask.Filter{})
	_, errs["Explain"] = s.Explain(ctx, ref)
	_, errs["Stats"] = s.Stats(ctx)
	_, errs["Forecast"] = s.Forecast(ctx, report.ForecastFilter{})
	_, errs["Series"] = s.Series(ctx, report.SeriesFilter{})
	_, errs["Overview"] = s.Overview(ctx)
	_, errs["Tags"] = s.Tags(ctx)
	_, errs["Nodes"] = s.Nodes(ctx)
	_, errs["Pop"] = s.Pop(ctx, "t")
	_, errs["FinishAll"] = s.FinishAll(ctx, []delaytask.Token{token})
	errs["Retry"], errs["Retry by key"] = s.Retry(ctx, ref), s.Retry(ctx, delaytask.Key("t", "k"))
	errs["Pause"], errs["Resume"], errs["Start"] = s.Pause(ctx, "t"), s.Resume(ctx, "t"), s.Start(ctx)
	errs["Finish"], errs["Release"] = s.Finish(ctx, token), s.Release(ctx, token)
	errs["Fail"], errs["Touch"] = s.Fail(ctx, token, errors.New("boom")), s.Touch(ctx, token, time.Second)
	if library, ok := s.Scheduler.(*scheduler.Scheduler); ok {
		tx := new(sql.Tx)
		_, errs["SaveDelayTaskTx"] = library.SaveDelayTaskTx(ctx, tx, "t", nil, 0)
		_, errs["CancelTx"] = library.CancelTx(ctx, tx, ref)
		_, errs["RescheduleTx"] = library.RescheduleTx(ctx, tx, ref, 0)
		_, errs["CancelAll"] = library.CancelAll(ctx, delaytask.Bulk{})
		_, errs["RetryAll"] = library.RetryAll(ctx, delaytask.Bulk{})
		_, errs["Lateness"] = library.Lateness(ctx, "t", time.Hour)
		errs["Ready"] = library.Ready(ctx)
	}
	return errs
}

func TestNoCallIsMadeWithoutAContextOrAfterAStop(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		ended, end := context.WithCancelCause(t.Context())
		cause := errors.New("the caller has left")
		end(cause)
		check := func(what string, ctx context.Context, want error) {
			t.Helper()
			for name, err := range calls(ctx, s) {
				wantError(t, name+" with "+what, err, want)
			}
		}
		check("a nil context", nil, delaytask.ErrNilContext)
		check("an ended context", ended, cause)
		wantError(t, "Stop with a nil context", s.Stop(nil), delaytask.ErrNilContext) //nolint:staticcheck // the case
		if library, ok := s.Scheduler.(*scheduler.Scheduler); ok {
			wantError(t, "Ready before Start", library.Ready(t.Context()), nil)
			_, err := library.Pop(t.Context(), "t")
			wantError(t, "Pop before Start", err, delaytask.ErrNotStarted)
		}
		for range 2 {
			wantError(t, "Start", s.Start(t.Context()), nil)
		}
		for range 2 {
			wantError(t, "Stop", s.Stop(t.Context()), nil)
		}
		check("a stopped scheduler", t.Context(), delaytask.ErrClosed)
		wantError(t, "Register", s.Register("t", processor.Func(nothing)), delaytask.ErrClosed)
		if n := total(t, s.another()); n != 0 {
			t.Errorf("%d tasks are stored, want none", n)
		}
	})
}

func TestTheEndOfTheContextOfStartStopsNothing(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		began := make(chan error, 1)
		servertest.OK(t, s.Register("t", processor.Func(func(ctx context.Context, _ *delaytask.Task) error {
			began <- context.Cause(ctx)
			return nil
		})))
		ctx, end := context.WithCancel(t.Context())
		servertest.OK(t, s.Start(ctx))
		end()
		save(t, s, "t", 0)
		wantError(t, "the processor's context", wait(t, began), nil)
		stop(t, s)
	})
}

func TestProcessorSavesWhatFollowsWhileTheSchedulerStops(t *testing.T) {
	t.Parallel()
	s, d := embedded(t)
	running, stopping, saved := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	start(t, s, "t", func(ctx context.Context, _ *delaytask.Task) error {
		close(running)
		<-stopping
		_, err := s.SaveDelayTask(ctx, "next", nil, time.Hour)
		saved <- err
		return err
	})
	id := save(t, s, "t", 0)
	<-running
	stopped := make(chan error, 1)
	go func() { stopped <- s.Stop(context.Background()) }()
	for !errors.Is(s.Start(t.Context()), delaytask.ErrClosed) { // until the stop has begun
		runtime.Gosched()
	}
	close(stopping)
	wantError(t, "save", <-saved, nil)
	wantError(t, "stop", <-stopped, nil)
	later := open(t, d)
	if task := get(t, later, id); task.Status != delaytask.Completed || total(t, later) != 2 {
		t.Errorf("it is %s, and one of %d tasks; want 2", task.Status, total(t, later))
	}
}

// wrapped hides the driver, as tracing libraries do.
type wrapped struct {
	hidden driver.Driver
	dsn    string
}

func (w wrapped) Connect(context.Context) (driver.Conn, error) { return w.hidden.Open(w.dsn) }
func (wrapped) Driver() driver.Driver                          { return nil }

func TestNewTakesThePoolOfAnApplicationAndLeavesItOpen(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		driver, dsn := "mysql", d.DSN
		if d.Kind == dbtest.SQLite {
			driver, dsn = "sqlite", strings.TrimPrefix(dsn, "sqlite:")
		}
		plain, err := sql.Open(driver, dsn)
		servertest.OK(t, err)
		t.Cleanup(func() { _ = plain.Close() })
		_, err = scheduler.New(t.Context(), plain, scheduler.Config{Logger: silent})
		if err == nil || !strings.Contains(err.Error(), "migrate") {
			t.Errorf("without tables: got %v, want an error that says how to migrate", err)
		}
		hidden := sql.OpenDB(wrapped{plain.Driver(), dsn})
		t.Cleanup(func() { _ = hidden.Close() })
		for _, db := range []*sql.DB{plain, hidden} {
			s, err := scheduler.New(t.Context(), db, scheduler.Config{Migrate: true, Logger: silent})
			servertest.OK(t, err)
			save(t, s, "t", 0)
			stop(t, s)
			if err := db.PingContext(t.Context()); err != nil {
				t.Errorf("after Stop: %v", err)
			}
		}
		servertest.Exec(t, d.DSN, "DROP TABLE delay_task_audit")
		_, err = scheduler.New(t.Context(), plain, scheduler.Config{Logger: silent})
		const says = "table delay_task_audit is missing (run: delaytask migrate up, or set " +
			"scheduler.Config{Migrate: true})"
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("without one of the tables: got %v, want %s", err, says)
		}
	})
}

func TestInvalidConfigsAreRefused(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*scheduler.Config){
		"negative concurrency":         func(c *scheduler.Config) { c.Concurrency = -1 },
		"a TTR below a second":         func(c *scheduler.Config) { c.TTR = time.Millisecond },
		"negative max attempts":        func(c *scheduler.Config) { c.MaxAttempts = -1 },
		"a look-ahead of a minute":     func(c *scheduler.Config) { c.LookAhead = time.Minute + 1 },
		"a negative body limit":        func(c *scheduler.Config) { c.BodyLimit = -1 },
		"no room for errors":           func(c *scheduler.Config) { c.ErrorLimit = 1 },
		"a quarantine after one crash": func(c *scheduler.Config) { c.Quarantine = 1 },
	} {
		cfg := scheduler.Config{}
		change(&cfg)
		_, err := scheduler.Open(t.Context(), "sqlite:"+t.TempDir()+"/x.db", cfg)
		wantError(t, name, err, scheduler.ErrInvalidConfig)
	}
	_, err := scheduler.Open(t.Context(), "postgres://u:secret@h/db", scheduler.Config{})
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("another kind of database: %v", err)
	}
	_, err = scheduler.New(t.Context(), nil, scheduler.Config{})
	wantError(t, "no pool", err, scheduler.ErrInvalidConfig)
	_, err = scheduler.Open(nil, "sqlite:x.db", scheduler.Config{}) //nolint:staticcheck // a nil context is the case
	wantError(t, "no context", err, delaytask.ErrNilContext)
}

func TestMetricsCountSaves(t *testing.T) {
	t.Parallel()
	measured := metrics.New()
	s, _ := embedded(t, func(c *scheduler.Config) { c.Metrics = measured })
	save(t, s, "t", time.Hour)
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(measured)
	families, err := registry.Gather()
	for _, f := range families {
		for _, m := range f.GetMetric() {
			stored := f.GetName() == "delaytask_saves_total" && m.GetLabel()[0].GetValue() == "stored"
			if stored && m.GetCounter().GetValue() == 1 {
				return
			}
		}
	}
	t.Errorf("no saves are counted in %v, %v", families, err)
}
