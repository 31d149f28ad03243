package engine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/engine/find"
	"github.com/delaytask/delaytask/internal/lifecycle"
	internalmetrics "github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/metrics"
	"github.com/delaytask/delaytask/processor"
)

// measured records, and shows what it has recorded.
type measured struct {
	internalmetrics.Recorder
	prometheus.Collector
}

func newMeasured() measured {
	m := metrics.New()
	return measured{m.Recorder(), m}
}

// series returns what the engine's collector shows: values by name and labels, such as runs_total{mail,completed}. Of a
// histogram it is the sum, and the count under the name with "#" before it.
func (w *world) series(e *Engine) map[string]float64 {
	w.Helper()
	registry := prometheus.NewRegistry()
	w.must(registry.Register(e.cfg.Metrics.(prometheus.Collector)))
	families, err := registry.Gather()
	w.must(err)
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := strings.TrimPrefix(f.GetName(), "delaytask_")
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			if len(labels) > 0 {
				slices.Reverse(labels) // the tag first
				name += "{" + strings.Join(labels, ",") + "}"
			}
			switch {
			case m.Histogram != nil:
				values[name] = m.GetHistogram().GetSampleSum()
				values["#"+name] = float64(m.GetHistogram().GetSampleCount())
			case m.Counter != nil:
				values[name] = m.GetCounter().GetValue()
			default:
				values[name] = m.GetGauge().GetValue()
			}
		}
	}
	return values
}

// measured checks the only value of a part of the tag's lateness.
func (w *world) measured(e *Engine, tag, part string, least, most time.Duration) {
	w.Helper()
	name := "lateness_seconds{" + tag + "," + part + "}"
	got := w.series(e)
	if v := got[name]; got["#"+name] != 1 || v < least.Seconds() || v > most.Seconds() {
		w.Errorf("%s is %v of %v values, want one from %v to %v", name, v, got["#"+name], least, most)
	}
}

// claimed wraps the store's Claim, which takes 10 ms, so that one claim of each tag can meet something.
func (w *world) claimed(meet map[string]func(row.Claim) error) claimHook {
	var mu sync.Mutex
	return claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
		lifecycle.Sleep(ctx, 10*time.Millisecond)
		var met func(row.Claim) error
		mu.Lock()
		for _, r := range c.Rows {
			tag := w.row(r.ID).Tag
			if f := meet[tag]; f != nil {
				met = f
				delete(meet, tag)
			}
		}
		mu.Unlock()
		if met != nil {
			if err := met(c); err != nil {
				return row.Claimed{}, err
			}
		}
		return w.store.Claim(ctx, c)
	}}
}

func TestLatenessIsMeasuredWhereItArises(t *testing.T) {
	inBubble(t, func(w *world) {
		store := w.claimed(map[string]func(row.Claim) error{
			"slow": func(row.Claim) error { time.Sleep(290 * time.Millisecond); return nil },
		})
		e := w.engine(store, serving{
			"punctual": nothing, "peeked": nothing, "slow": nothing, "waits": nothing,
			"busy": untilEnd(800*time.Millisecond, nil),
		}, func(c *Config) { c.Concurrency = 1 })
		time.Sleep(5 * time.Second)
		w.save(e, "punctual", 3*time.Second)
		time.Sleep(4 * time.Second)
		w.save(e, "slow", 3*time.Second)
		time.Sleep(4 * time.Second)
		w.plain(1000, "peeked", row.At(time.Now().Add(-300*time.Millisecond)))
		time.Sleep(4 * time.Second)
		w.save(e, "busy", 0)
		w.save(e, "waits", 500*time.Millisecond)
		time.Sleep(4 * time.Second)

		const ms = time.Millisecond
		for _, part := range []string{"total", "timer", "claim", "pool"} {
			w.measured(e, "punctual", part, 0, 2*ms)
		}
		w.measured(e, "slow", "total", 205*ms, 290*ms) // claimed up to 95 ms ahead
		w.measured(e, "slow", "timer", 0, ms)
		w.measured(e, "slow", "claim", 205*ms, 290*ms)
		w.measured(e, "slow", "pool", 0, ms)

		w.measured(
			e,
			"peeked",
			"total",
			300*ms,
			860*ms,
		) // by a bound of the clock, which may lag behind by milliseconds
		w.measured(e, "peeked", "timer", 290*ms, 850*ms)
		w.measured(e, "peeked", "claim", 9*ms, 12*ms)
		w.measured(e, "peeked", "pool", 0, 2*ms)

		w.measured(e, "waits", "total", 300*ms, 330*ms) // the slot is free 300 ms after its due time
		w.measured(e, "waits", "timer", 0, ms)
		w.measured(e, "waits", "claim", 9*ms, 12*ms)
		w.measured(e, "waits", "pool", 290*ms, 320*ms)

		w.plain(1001, "popped", row.At(time.Now().Add(-300*time.Millisecond)))
		w.take(e, "popped")
		w.measured(e, "popped", "total", 309*ms, 360*ms)
		w.measured(e, "popped", "timer", 299*ms, 350*ms)
		w.measured(e, "popped", "claim", 9*ms, 60*ms)
		w.measured(e, "popped", "pool", 0, 50*ms) // a pop waits for no slot
	})
}

func TestEverySeriesIsFedByWhatHappens(t *testing.T) {
	inBubble(t, func(w *world) {
		const ahead = 2 * time.Second // of this machine is the database
		w.store.SetOffset(ahead)
		w.runs.offset = ahead
		claims := w.claimed(map[string]func(row.Claim) error{
			"lost": func(c row.Claim) error {
				c.Executor = another
				_, err := w.store.Claim(w.Context(), c)
				return err
			},
			"deadlock": func(row.Claim) error {
				return &row.Error{Class: row.ClassNotApplied, Op: "claim tasks", Err: errors.New("deadlock")}
			},
			"late": func(row.Claim) error { time.Sleep(500 * time.Millisecond); return nil },
		})
		first := func(err error) processor.Func {
			done := false
			return func(context.Context, *delaytask.Task) error {
				if done {
					return nil
				}
				done = true
				return err
			}
		}
		e := w.engine(slow(claims, "Now", 4*time.Millisecond), serving{ // the clock's bounds are as far apart
			"ok": nothing, "lost": nothing, "deadlock": nothing, "late": nothing, "poison": nothing,
			"flaky": first(errors.New("boom")), "sleepy": first(processor.Snooze(time.Second)),
			"permanent": first(processor.Permanent(errors.New("boom"))),
			"panics": func(_ context.Context, task *delaytask.Task) error {
				if task.Attempt == 1 {
					panic("boom")
				}
				return nil
			},
			"deaf": func(context.Context, *delaytask.Task) error {
				time.Sleep(3 * time.Second)
				return errors.New("cancelled")
			},
			"long": untilEnd(20*time.Second, nil),
		}, func(c *Config) {
			c.Concurrency = 7
			c.Retention = find.Retention{Completed: 20 * time.Second, Failed: 20 * time.Second}
		})
		w.idle(w.store, nil)
		time.Sleep(3 * time.Second)
		for _, tag := range []string{"ok", "deadlock", "flaky", "sleepy", "permanent", "panics"} {
			w.save(e, tag, 0)
			time.Sleep(3 * time.Second)
		}
		w.save(e, "lost", 0, delaytask.WithTTR(3*time.Second))
		time.Sleep(time.Second)
		w.save(e, "late", 0, delaytask.WithMaxLateness(100*time.Millisecond, delaytask.LateSkip))
		time.Sleep(time.Second)
		deaf := w.save(e, "deaf", 0)
		time.Sleep(time.Second)
		_, err := e.Cancel(w.Context(), nil, control.Ref{ID: deaf}, false)
		w.must(err)
		w.store.Plant(row.Row{
			ID: 1000, Tag: "poison", Status: row.Executing, Version: 9, Attempt: 1, CrashCount: 4, TTR: time.Minute,
			Executor: another, Due: row.At(time.Now()),
		})
		w.save(e, "nobody", time.Hour, delaytask.WithKey("k"))
		if _, _, err := e.Save(w.Context(), w.task("nobody", time.Hour, delaytask.WithKey("k"))); !errors.Is(
			err,
			delaytask.ErrDuplicate,
		) {
			w.Fatal(err)
		}
		w.save(e, "ok", 30*time.Minute)
		time.Sleep(time.Minute)
		w.save(e, "long", 0)
		time.Sleep(8 * time.Second) // its lease is renewed after 5 s

		got := w.series(e)
		if width := got["clock_width_seconds"]; width < 0.004 || width > 0.008 {
			w.Errorf("the clock's bounds are %v s apart, want about 4 ms", width)
		}
		if skew := got["clock_skew_seconds"]; skew > -1.99 || skew < -2.01 {
			w.Errorf("this machine is %v s ahead of the database, want -2", skew)
		}
		maps.DeleteFunc(got, func(name string, value float64) bool {
			// Counts of attempts begin at zero.
			attempts := strings.HasPrefix(name, "runs_total{") || strings.HasPrefix(name, "retries_total{")
			return attempts && value == 0 ||
				strings.HasPrefix(name, "tag_nodes{") || strings.HasPrefix(name, "purge_lag_") ||
				strings.HasPrefix(name, "clock_") || strings.Contains(name, "run_duration_") ||
				strings.Contains(name, "due_") || // these have tests of their own
				strings.Contains(name, "lateness_") && !strings.HasPrefix(name, "#") ||
				strings.HasPrefix(name, "#lateness_") && !strings.HasSuffix(name, ",total}")
		})
		want := map[string]float64{
			"saves_total{stored}": 12, "saves_total{duplicate}": 1,
			"saves_total{conflict}": 0, "saves_total{refused}": 0, "saves_total{unknown}": 0, "saves_total{failed}": 0,
			"claims_total{won}": 13, "claims_total{lost}": 1, "claims_total{error}": 1,
			"runs_total{ok,completed}": 1, "runs_total{deadlock,completed}": 1, "runs_total{lost,completed}": 1,
			"runs_total{flaky,retried}": 1, "runs_total{flaky,completed}": 1,
			"runs_total{sleepy,snoozed}": 1, "runs_total{sleepy,completed}": 1,
			"runs_total{panics,panicked}": 1, "runs_total{panics,completed}": 1,
			"runs_total{permanent,failed}": 1, "runs_total{late,skipped_late}": 1, "runs_total{deaf,cancelled}": 1,
			"retries_total{flaky}": 1, "retries_total{panics}": 1,
			"rescues_total{returned}": 1, "rescues_total{quarantined}": 1, "quarantined_total": 1,
			"ignored_context_total":   1,
			"purged_total{completed}": 6, "purged_total{failed}": 2, "purged_total{cancelled}": 0,
			"database_errors_total{not_applied}": 1, "database_errors_total{unknown}": 0,
			"database_errors_total{locked}":    0,
			"database_errors_total{duplicate}": 0, "database_errors_total{caller}": 0,
			"database_errors_total{operator}": 0,
			"batch_size{save}":                13, "#batch_size{save}": 13,
			"batch_size{claim}": 15, "#batch_size{claim}": 15,
			"batch_size{settle}": 11, "#batch_size{settle}": 11, "batch_size{renew}": 1, "#batch_size{renew}": 1,
			// Only first attempts that started count: not what a rescue has returned, nor what was skipped.
			"#lateness_seconds{ok,total}": 1, "#lateness_seconds{deadlock,total}": 1,
			"#lateness_seconds{flaky,total}":  1,
			"#lateness_seconds{sleepy,total}": 1, "#lateness_seconds{panics,total}": 1,
			"#lateness_seconds{permanent,total}": 1,
			"#lateness_seconds{deaf,total}":      1, "#lateness_seconds{long,total}": 1,
			"heap_entries": 1, "running_tasks": 1, "concurrency": 7, "nodes_alive": 2, "unreachable_nodes": 0,
			"schedules_unreadable": 0,
			"wakeups_total{sent}":  0, "wakeups_total{received}": 0, "wakeups_total{refused}": 0,
			"wakeups_total{lost}": 0,
		}
		for name, value := range want {
			if v, ok := got[name]; !ok || v != value {
				w.Errorf("%s is %v, want %v", name, v, value)
			}
			delete(got, name)
		}
		if len(got) > 0 {
			w.Errorf("nobody expects %v", got)
		}
	})
}

func TestBacklogShowsWhatIsDueAndWaits(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing, "b": nothing})
		w.must(e.Pause(w.Context(), "a", ""))
		ids := w.many(e, 5, "a", time.Second)
		w.save(e, "a", time.Hour)
		time.Sleep(time.Minute)
		got := w.series(e)
		if got["due_tasks{a}"] != 5 || got["due_tasks{b}"] != 0 {
			w.Errorf("the backlog is %v", got)
		}
		if oldest := got["oldest_due_seconds{a}"]; oldest < 40 || oldest > 59 {
			w.Errorf("the oldest was due %v s ago", oldest)
		}
		for _, counter := range []string{"runs_total{b,completed}", "runs_total{b,failed}", "retries_total{b}"} {
			if value, there := got[counter]; !there || value != 0 {
				w.Errorf("%s is %v before the first attempt, want 0", counter, value)
			}
		}
		w.must(e.Resume(w.Context(), "a"))
		time.Sleep(20 * time.Second)
		w.standing(row.Completed, 1, 0, ids...)
		if got := w.series(e); got["due_tasks{a}"] != 0 || got["oldest_due_seconds{a}"] != 0 {
			w.Errorf("when nothing waits, the backlog is %v", got)
		}
		w.must(e.Stop(w.Context()))
		if _, there := w.series(e)["due_tasks{a}"]; there {
			w.Error("there is a backlog after the stop")
		}
	})
}

// A tag has to show when the last process that serves it is gone, also in a process that only saves.
func TestTagsThatNoProcessServesHaveABacklog(t *testing.T) {
	inBubble(t, func(w *world) {
		saves, serves := w.idle(w.store, nil), w.engine(w.store, serving{"a": nothing})
		other := w.engine(w.store, serving{"a": nothing, "b": nothing})
		w.save(saves, "c", time.Second)
		w.save(saves, "later", time.Hour)
		time.Sleep(30 * time.Second)
		for e, want := range map[*Engine]map[string]float64{
			saves:  {"tag_nodes{c}": 0, "due_tasks{c}": 1, "nodes_alive": 3},
			serves: {"tag_nodes{a}": 2, "tag_nodes{c}": 0, "due_tasks{a}": 0, "due_tasks{c}": 1, "nodes_alive": 3},
			other: {"tag_nodes{a}": 2, "tag_nodes{b}": 1, "tag_nodes{c}": 0, "due_tasks{a}": 0, "due_tasks{b}": 0,
				"due_tasks{c}": 1, "nodes_alive": 3},
		} {
			got := w.series(e)
			maps.DeleteFunc(got, func(name string, _ float64) bool {
				return !strings.HasPrefix(name, "tag_nodes") && !strings.HasPrefix(name, "due_tasks") &&
					name != "nodes_alive"
			})
			if !maps.Equal(got, want) {
				w.Errorf("got %v, want %v", got, want)
			}
		}
		w.must(other.Stop(w.Context()))
		w.save(saves, "b", time.Second)
		time.Sleep(30 * time.Second)
		if got := w.series(saves); got["tag_nodes{b}"] != 0 || got["due_tasks{b}"] != 1 ||
			got["oldest_due_seconds{b}"] < 10 {
			w.Errorf("after the last process of a tag has stopped: %v", got)
		}
	})
}

func TestOverdueTagsThatNoProcessServesAreToldOfOnceAMinute(t *testing.T) {
	inBubble(t, func(w *world) {
		logged, log := listen()
		saves := w.idle(w.store, nil)
		e := w.engine(w.store, serving{"a": nothing}, log)
		w.must(e.Pause(w.Context(), "paused", ""))
		for _, tag := range []string{"a", "gone", "paused"} {
			w.save(saves, tag, time.Second)
		}
		w.save(saves, "later", time.Hour)
		const says = "no live process serves their tag"
		time.Sleep(10 * time.Second)
		if got := logged.all(); strings.Contains(got, says) {
			w.Errorf("at the first reading: %s", got)
		}
		time.Sleep(3 * time.Minute)
		got := logged.all()
		if n := strings.Count(got, says); n < 2 || n > 3 || strings.Count(got, "tag=gone") != n {
			w.Errorf("%d warnings in three minutes: %s", n, got)
		}
		w.engine(w.store, serving{"gone": nothing})
		time.Sleep(time.Minute)
		if after := strings.Count(logged.all(), says); after > strings.Count(got, says) {
			w.Error("it goes on when a process serves the tag")
		}
	})
}

// The reads are bounded: one look in 15 s, however often the metrics are scraped, 1,000 tasks of a tag, 100 tags.
func TestBacklogIsReadSeldomAndInBounds(t *testing.T) {
	inBubble(t, func(w *world) {
		var mu sync.Mutex
		var looks []time.Time
		counted := 0
		store := around{w.store, func(_ context.Context, call string, do func() error) error {
			mu.Lock()
			defer mu.Unlock()
			switch call {
			case "Oldest":
				looks = append(looks, time.Now())
			case "Due":
				counted++
			}
			return do()
		}}
		e := w.idle(store, nil)
		for tag := range 2 * backlogTags {
			w.plain(int64(1+tag), fmt.Sprint("t", tag), row.At(time.Now().Add(-time.Duration(1+tag)*time.Minute)))
		}
		w.backlog(2*backlogMost, "long", row.At(time.Now().Add(-24*time.Hour)))
		for range 600 {
			time.Sleep(time.Second)
			w.series(e)
		}
		mu.Lock()
		defer mu.Unlock()
		for i := range len(looks) - 1 {
			if apart := looks[i+1].Sub(looks[i]); apart < 15*time.Second || apart > 20*time.Second {
				w.Errorf("two looks are %v apart", apart)
			}
		}
		if len(looks) < 30 || counted != len(looks)*backlogTags {
			w.Errorf("%d looks have counted %d times, want %d each", len(looks), counted, backlogTags)
		}
		got := w.series(e)
		if got["due_tasks{long}"] != backlogMost || got[fmt.Sprintf("due_tasks{t%d}", 2*backlogTags-1)] != 1 {
			w.Errorf("the tags that have waited longest: %v", got)
		}
		if _, there := got["due_tasks{t0}"]; there {
			w.Error("the tag that has waited least is counted")
		}
	})
}

func TestBacklogThatCannotBeReadHasNoValue(t *testing.T) {
	inBubble(t, func(w *world) {
		store := newRemote(w.store, false)
		e := w.engine(store, serving{"a": nothing}, func(c *Config) { c.Retention.Failed = time.Hour })
		names := []string{"due_tasks{a}", "oldest_due_seconds{a}", "tag_nodes{a}", "purge_lag_seconds{failed}"}
		for _, down := range []bool{false, true, false} {
			store.away.Store(down)
			time.Sleep(30 * time.Second)
			got := w.series(e)
			for _, name := range names {
				if _, there := got[name]; there == down {
					w.Errorf("while the database is away (%t), %s is there (%t)", down, name, there)
				}
			}
		}
	})
}

// purgeless is a store whose purges delete nothing.
type purgeless struct{ store.Store }

func (purgeless) Purge(context.Context, row.Status, []string, row.Time, int) (int, []string, error) {
	return 0, nil, nil
}

func TestPurgeLagIsTimePastTheRetention(t *testing.T) {
	inBubble(t, func(w *world) {
		keep := func(c *Config) { c.Retention = find.Retention{Completed: time.Hour, Failed: 48 * time.Hour} }
		saves := w.idle(w.store, nil, keep)
		e := w.engine(purgeless{w.store}, serving{"a": nothing}, keep)
		for id, status := range []row.Status{row.Completed, row.Failed, row.Cancelled} {
			ended := row.At(time.Now().Add(-24 * time.Hour))
			w.store.Plant(row.Row{ID: int64(1 + id), Tag: "a", Status: status, Due: ended})
		}
		time.Sleep(30 * time.Second)
		got := w.series(e)
		if lag := got["purge_lag_seconds{completed}"]; lag < 23*3600 || lag > 23*3600+30 {
			w.Errorf("a task that ended a day ago and is kept for an hour lags %v s", lag)
		}
		if lag, there := got["purge_lag_seconds{failed}"]; !there || lag != 0 {
			w.Errorf("a task within its retention lags %v s", lag)
		}
		if _, there := got["purge_lag_seconds{cancelled}"]; there {
			w.Error("what is kept for ever lags")
		}
		if _, there := w.series(saves)["purge_lag_seconds{completed}"]; there {
			w.Error("a process that does not purge has a lag")
		}
	})
}

// A database that is away widens the bounds. After a suspend or a failover it has no bounds until it answers.
func TestClockIsHeldWhileItsTimeIsNotKnown(t *testing.T) {
	inBubble(t, func(w *world) {
		store := newRemote(w.store, false)
		e := w.engine(store, serving{"a": nothing})
		time.Sleep(3 * time.Second)
		if got := w.series(e)["clock_held"]; got != 0 {
			w.Errorf("with a clock, held is %v", got)
		}
		before := w.series(e)["clock_width_seconds"]
		store.away.Store(true)
		time.Sleep(10 * time.Minute)
		if got := w.series(e); got["clock_held"] != 0 || got["clock_width_seconds"] < before+0.5 {
			w.Errorf("without readings the bounds are %v s apart, held is %v", got["clock_width_seconds"],
				got["clock_held"])
		}
		e.Bounds.Drop()
		time.Sleep(3 * time.Second)
		if got := w.series(e)["clock_held"]; got != 1 {
			w.Errorf("without a clock, held is %v", got)
		}
		store.away.Store(false)
		time.Sleep(3 * time.Second)
		if got := w.series(e)["clock_held"]; got != 0 {
			w.Errorf("when the clock is known again, held is %v", got)
		}
	})
}

func TestRunsAreMeasured(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": untilEnd(3*time.Second, nil)})
		w.many(e, 2, "a", time.Second)
		time.Sleep(10 * time.Second)
		if got := w.series(e); got["#run_duration_seconds{a}"] != 2 || got["run_duration_seconds{a}"] != 6 {
			w.Errorf("two runs of 3 s are measured as %v", got)
		}
	})
}
