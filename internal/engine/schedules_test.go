package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
	"github.com/delaytask/delaytask/internal/schedules/plan"
	"github.com/delaytask/delaytask/internal/schedules/spec"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

// schedule stores a schedule of the tag "a".
func (w *world) schedule(e *Engine, name, line string, opts ...delaytask.Option) row.Schedule {
	w.Helper()
	return w.scheduleOf("a", e, name, line, opts...)
}

func (w *world) scheduleOf(tag string, e *Engine, name, line string, opts ...delaytask.Option) row.Schedule {
	w.Helper()
	save, err := request.NewSchedule(name, delaytask.Spec{}, tag, name, request.Limits{}, opts...)
	w.must(err)
	sp, err := spec.Parse(delaytask.Spec{Lines: []string{line}})
	w.must(err)
	s, err := e.Schedules().Save(w.Context(), e.NewSchedule(&save), sp, plan.Only{})
	w.must(err)
	return s
}

// history returns what became of the ticks of a schedule, the oldest first.
func (w *world) history(name string) (lines []string) {
	w.Helper()
	found, _, err := w.store.Schedules(w.Context(), row.ScheduleFilter{Names: []string{name}, Limit: 1})
	w.must(err)
	runs, err := w.store.Runs(w.Context(), found[0].ID, 0, 1000)
	w.must(err)
	for _, r := range slices.Backward(runs) {
		line := fmt.Sprintf("%v %s", r.Outcome, r.Cause)
		if r.Ticks > 1 {
			line += fmt.Sprintf(" ×%d", r.Ticks)
		}
		if late := r.Start.Sub(r.Tick); r.Outcome == row.OutcomeCompleted && late > time.Millisecond {
			line += fmt.Sprintf(" +%v", late.Round(time.Millisecond))
		}
		lines = append(lines, line)
	}
	return lines
}

func (w *world) wantHistory(name string, want ...string) {
	w.Helper()
	if got := w.history(name); !slices.Equal(got, want) {
		w.Errorf("%s:\n got %q\nwant %q", name, got, want)
	}
}

func TestTicksOfOneSecondRunEachOnItsMillisecond(t *testing.T) {
	inBubble(t, func(w *world) {
		var mu sync.Mutex
		var last time.Time
		n := 0
		run := func(_ context.Context, task *delaytask.Task) error {
			mu.Lock()
			defer mu.Unlock()
			s := task.Schedule
			n++
			if s == nil || s.Cause != delaytask.CauseTick || !last.IsZero() && s.Tick != last.Add(time.Second) {
				w.Errorf("run %d after %v: %+v", n, last, s)
			}
			last = s.Tick
			return nil
		}
		e := w.engine(w.store, serving{"a": run})
		w.engine(w.store, serving{"a": run}) // the schedule may be of its share
		w.schedule(e, "beat", "@every 1s")
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, line := range w.history("beat") {
			if line != "completed tick" && line != "open tick" {
				w.Error(line)
			}
		}
		if n < 59 {
			w.Errorf("%d runs", n)
		}
	})
}

func TestASerialRunThatTakesLongLetsTicksPass(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": untilEnd(2500*time.Millisecond, nil)})
		time.Sleep(time.Second / 2)
		w.schedule(e, "slow", "@every 1s")
		time.Sleep(6 * time.Second)
		w.wantHistory("slow",
			"completed tick", "skipped tick", "skipped tick", "open tick", "skipped tick", "skipped tick")
	})
}

func TestARunIsNotTriedAgainAfterTheNextTick(t *testing.T) {
	inBubble(t, func(w *world) {
		tries := 0
		e := w.engine(w.store, serving{"a": func(context.Context, *delaytask.Task) error {
			tries++
			return errors.New("boom")
		}}, func(c *Config) { c.Backoff = processor.Constant(4 * time.Second) })
		time.Sleep(time.Second / 2)
		w.schedule(e, "failing", "@every 10s")
		time.Sleep(20 * time.Second)
		synctest.Wait()
		if got := w.history("failing"); len(got) < 2 || got[0] != "failed tick" || tries != 4 {
			w.Error(got, tries)
		}
	})
}

func TestARetryThatWaitsThroughAnOutageDoesNotBeginAfterTheNextTick(t *testing.T) {
	inBubble(t, func(w *world) {
		tries := 0
		serve := serving{"a": func(context.Context, *delaytask.Task) error {
			if tries++; tries > 1 {
				return nil
			}
			return errors.New("boom")
		}}
		backoff := func(c *Config) { c.Backoff = processor.Constant(4 * time.Second) }
		e := w.engine(w.store, serve, backoff)
		w.schedule(e, "failing", "@every 1h")
		time.Sleep(time.Until(time.Now().Truncate(time.Hour).Add(time.Hour + time.Second)))
		w.crash(e)
		time.Sleep(7 * 24 * time.Hour)
		w.engine(w.store, serve, backoff)
		time.Sleep(time.Minute)
		got := w.history("failing")
		// The end is stored just before a look at the schedule, or just after it.
		one := []string{"failed tick", "missed tick ×167", "completed tick +1s"}
		other := []string{"failed tick", "missed tick ×167", "completed tick +1.02s"}
		if !slices.Equal(got, one) && !slices.Equal(got, other) {
			w.Errorf("got %q, want %q or %q", got, one, other)
		}
		if tries != 2 {
			w.Errorf("%d attempts", tries)
		}
		want := "boom; no further attempt, because it would begin after the next tick of its schedule"
		if r := w.of("a")[0]; r.Attempt != 1 || r.ErrorStack != want {
			w.Errorf("attempt %d: %s", r.Attempt, r.ErrorStack)
		}
	})
}

func TestAnotherNodeTakesOver(t *testing.T) {
	inBubble(t, func(w *world) {
		first := w.engine(w.store, serving{"a": nothing})
		w.engine(w.store, serving{"a": nothing})
		time.Sleep(time.Second / 2)
		for i := range 20 {
			w.schedule(first, fmt.Sprint("job-", i), "@every 30s")
		}
		time.Sleep(35 * time.Second)
		w.crash(first)
		time.Sleep(2 * time.Minute)
		for i := range 20 {
			for _, line := range w.history(fmt.Sprint("job-", i)) {
				if line != "completed tick" && line != "open tick" {
					w.Errorf("job %d: %s", i, line)
				}
			}
		}
	})
}

func TestAReplacedRunEndsBeforeTheNextOneBegins(t *testing.T) {
	inBubble(t, func(w *world) {
		running, together := 0, 0
		e := w.engine(w.store, serving{"a": func(ctx context.Context, _ *delaytask.Task) error {
			running++
			together = max(together, running)
			<-ctx.Done()
			time.Sleep(time.Second) // to clean up
			running--
			return ctx.Err()
		}})
		w.lossy[e] = true // its processor takes longer than the grace
		time.Sleep(time.Second / 2)
		w.schedule(e, "latest", "@every 20s", delaytask.WithOverlap(delaytask.OverlapReplace))
		time.Sleep(70 * time.Second)
		synctest.Wait()
		if together != 1 {
			w.Errorf("%d run together", together)
		}
		got := w.history("latest")
		if len(got) < 3 || got[0] != "cancelled tick" || got[len(got)-1] != "open tick" {
			w.Error(got)
		}
		for _, r := range w.of("a")[1:] {
			if r.Execution.IsZero() || r.Execution.Sub(r.Expected) > 5*time.Second {
				w.Errorf("run of %v began at %v: its lease would have lasted longer", r.TickOf.Tick, r.Execution)
			}
		}
	})
}

// A processor that returns by itself may do so before its process sees that the run was replaced.
func TestAReplacedRunThatReturnsByItselfHoldsNothingUp(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": func(context.Context, *delaytask.Task) error {
			time.Sleep(20*time.Second + 50*time.Millisecond)
			return nil
		}})
		time.Sleep(time.Second / 2)
		w.schedule(e, "latest", "@every 20s", delaytask.WithOverlap(delaytask.OverlapReplace))
		time.Sleep(90 * time.Second)
		for _, r := range w.of("a")[1:] {
			if late := r.Execution.Sub(r.Expected); late > time.Second {
				w.Errorf("run of %v began %v late: it waited for the lease of the one before", r.TickOf.Tick, late)
			}
		}
	})
}

func TestARetriedOldRunIsInTheWay(t *testing.T) {
	inBubble(t, func(w *world) {
		var succeeds atomic.Bool
		e := w.engine(w.store, serving{"a": func(ctx context.Context, _ *delaytask.Task) error {
			if !succeeds.Load() {
				return processor.Permanent(errors.New("boom"))
			}
			time.Sleep(25 * time.Second)
			return nil
		}})
		time.Sleep(time.Second / 2)
		w.schedule(e, "nightly", "@every 20s")
		time.Sleep(20 * time.Second)
		succeeds.Store(true)
		err := e.Retry(w.Context(), control.Ref{ID: w.of("a")[0].ID})
		if err != nil && !errors.Is(err, delaytask.ErrDuplicate) {
			w.Error(err)
		}
		time.Sleep(40 * time.Second)
		w.wantHistory("nightly", "failed tick", "skipped tick", "open tick")
	})
}

func pauseFor(reason string) func(decide.State) (row.Decision, error) {
	return func(st decide.State) (row.Decision, error) { return decide.Pause(st, reason) }
}

func TestTheHistoryIsTrimmed(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		w.schedule(e, "beat", "@every 1s", delaytask.WithKeepRuns(10))
		time.Sleep(5 * time.Minute)
		if n := len(w.history("beat")); n < 10 || n > 10+200 {
			w.Errorf("%d rows", n)
		}
	})
}

func TestSchedulesAreMeasured(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": func(_ context.Context, task *delaytask.Task) error {
			if string(task.Body) == "bad" {
				return processor.Permanent(errors.New("boom"))
			}
			return nil
		}})
		w.schedule(e, "good", "@every 30s")
		w.schedule(e, "bad", "@every 30s")
		w.schedule(e, "resting", "@every 30s")
		_, err := e.Schedules().Change(w.Context(), "resting", pauseFor("holidays"))
		w.must(err)
		time.Sleep(160 * time.Second)
		got := w.series(e)
		for name, want := range map[string]float64{
			"schedule_ticks_total{good,completed}": 5, "schedule_ticks_total{bad,failed}": 5,
			"schedule_unsuccessful_ticks{good}": 0,
			"schedule_paused_itself{resting}":   0, "schedule_paused_itself{good}": 0,
			"schedule_paused{resting}": 1, "schedule_paused{good}": 0, "schedule_behind_ticks{good}": 0,
		} {
			if value, there := got[name]; !there || value != want {
				w.Errorf("%s is %v, want %v", name, value, want)
			}
		}
		if got["schedule_failures{bad}"] < 3 || got["schedule_unsuccessful_ticks{bad}"] < 3 { // a minute old at most
			w.Errorf("the failing schedule stands at %v", got)
		}
		next := got["schedule_next_timestamp_seconds{good}"] - got["schedule_last_success_timestamp_seconds{good}"]
		if next != 30 && next != 60 {
			w.Errorf("the next tick is %v s after the last success", next)
		}
	})
}

// No process has to look at a schedule that rests. The metrics tell of it all the same, also after a start.
func TestAScheduleThatHasPausedItselfIsMeasured(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": func(context.Context, *delaytask.Task) error {
			return processor.Permanent(errors.New("boom"))
		}})
		w.schedule(e, "bad", "@every 30s", delaytask.WithPauseAfter(2))
		time.Sleep(3 * time.Minute)
		w.must(e.Stop(w.Context()))
		again := w.engine(w.store, serving{"a": nothing})
		time.Sleep(3 * time.Minute)
		if got := w.series(again)["schedule_paused_itself{bad}"]; got != 1 {
			w.Errorf("paused_itself is %v", got)
		}
	})
}

func TestAScheduleThatCannotBeReadStopsNoOther(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		w.schedule(e, "good", "@every 10s")
		for i, change := range []func(*row.Schedule){
			func(s *row.Schedule) { s.Spec += "\nzone Nowhere/City" },
			func(s *row.Schedule) { s.Grammar = spec.Grammar + 1 },
		} {
			bad := w.schedule(e, fmt.Sprint("bad-", i), "@every 10s")
			bad.ID, bad.Name, bad.Look = bad.ID+1, bad.Name+"-changed", row.MinTime
			change(&bad)
			applied, err := w.store.Decide(w.Context(), []row.Decision{{Write: row.WriteNew, Schedule: bad}})
			if err != nil || !applied {
				w.Fatal(applied, err)
			}
		}
		time.Sleep(2 * time.Minute)
		for _, line := range w.history("good") {
			if line != "completed tick" && line != "open tick" {
				w.Error(line)
			}
		}
		if n := w.series(e)["schedules_unreadable"]; n != 2 {
			w.Errorf("%v are unreadable, want 2", n)
		}
	})
}

// countsReads counts reads of schedules.
type countsReads struct {
	store.Store
	mu    sync.Mutex
	reads map[string]int
}

// take returns what was counted since the last call.
func (s *countsReads) take() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	reads := s.reads
	s.reads = map[string]int{}
	return reads
}

func (s *countsReads) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reads[what]++
}

func (s *countsReads) LookAt(
	ctx context.Context, until, from row.Time, afterID int64, limit int,
) ([]row.Schedule, []row.Broken, error) {
	s.count("looks")
	return s.Store.LookAt(ctx, until, from, afterID, limit)
}

func (s *countsReads) Schedules(ctx context.Context, f row.ScheduleFilter) ([]row.Schedule, []row.Broken, error) {
	if f.Owner != "" {
		s.count("of an owner")
	}
	return s.Store.Schedules(ctx, f)
}

func (s *countsReads) OpenRuns(ctx context.Context, of []int64, limit int) ([]row.ScheduleRun, error) {
	s.count("open runs")
	return s.Store.OpenRuns(ctx, of, limit)
}

func TestSchedulesCostNoReadWhileNoneNeedsAttention(t *testing.T) {
	inBubble(t, func(w *world) {
		counted := &countsReads{Store: w.store, reads: map[string]int{}}
		e := w.engine(counted, serving{"a": nothing})
		time.Sleep(time.Minute)
		if reads := counted.take(); len(reads) != 0 {
			w.Errorf("without a schedule: %v", reads)
		}
		w.schedule(e, "yearly", "0 0 1 7 *")
		time.Sleep(2 * time.Second)
		counted.take()
		time.Sleep(30 * time.Second)
		reads := counted.take()
		if reads["looks"] != 0 || reads["open runs"] > 1 { // of the metrics, once a minute
			w.Errorf("for a schedule that is due in months: %v", reads)
		}
		for i := range 50 {
			w.schedule(e, fmt.Sprint("busy-", i), fmt.Sprintf("@every 10s/%ds", i%10))
		}
		time.Sleep(10 * time.Second)
		counted.take()
		time.Sleep(30 * time.Second)
		reads = counted.take()
		// Five runs end each second, and share their reads.
		if open := reads["open runs"]; reads["looks"] > 31 || open < 25 || open > 60 {
			w.Errorf("in 30 s with 50 schedules: %v", reads)
		}
	})
}

// TestAScheduleChangesHandsBetweenCheckAndChange gives a schedule another tag after a caller was let through for the
// first one.
func TestAScheduleChangesHandsBetweenCheckAndChange(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		s := w.schedule(e, "s", "@every 1h")
		sp, err := spec.ParseText(s.Spec)
		w.must(err)
		s.Tag = "b"
		refused := errors.New("not of this tag")
		ctx := plan.WithGuard(w.Context(), func(tag string) error {
			if tag == "b" {
				return refused
			}
			_, err := e.Schedules().Save(w.Context(), s, sp, plan.Only{})
			return err
		})
		pause := func(st decide.State) (row.Decision, error) { return decide.Pause(st, "") }
		if _, err := e.Schedules().Change(ctx, "s", pause); !errors.Is(err, refused) {
			w.Errorf("pause: %v", err)
		}
		got, err := e.Schedules().Get(w.Context(), "s")
		w.must(err)
		if got.Tag != "b" || got.State != row.ScheduleActive {
			w.Errorf("got tag %s, %v", got.Tag, got.State)
		}
	})
}

// TestACreateReplacesNoScheduleThatIsStoredMeanwhile stores another one of the name after a create has found none.
func TestACreateReplacesNoScheduleThatIsStoredMeanwhile(t *testing.T) {
	inBubble(t, func(w *world) {
		e, other := w.engine(w.store, nil), w.idle(w.store, nil)
		s := w.schedule(other, "first", "@every 1h")
		sp, err := spec.ParseText(s.Spec)
		w.must(err)
		next := e.Schedules().NextID
		e.Schedules().NextID = sync.OnceValue(func() int64 {
			w.schedule(other, "s", "@every 1m")
			return next()
		})
		s.Name = "s"
		_, err = e.Schedules().Save(w.Context(), s, sp, plan.Only{New: true})
		if !errors.Is(err, delaytask.ErrScheduleExists) {
			w.Errorf("the create: %v", err)
		}
	})
}

// TestNothingIsDecidedWithoutTheTime asks a process that has no reading of the clock, as after a failover.
func TestNothingIsDecidedWithoutTheTime(t *testing.T) {
	inBubble(t, func(w *world) {
		s := w.schedule(w.engine(w.store, serving{"a": nothing}), "s", "@every 1h")
		e := w.idle(w.store, serving{"a": nothing})
		e.Schedules().Now = func() (row.Time, bool) { return 0, false }
		ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
		defer cancel()
		if _, err := e.Schedules().Change(ctx, "s", decide.Reset); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("reset: %v", err)
		}
		got, err := e.Schedules().Get(w.Context(), "s")
		w.must(err)
		if got.Next != s.Next {
			w.Errorf("its next tick is %v", got.Next)
		}
	})
}

// Two edits follow a skip, and the second one takes back what the first one has planted.
func TestAScheduleGoesOnAfterATickThatWasSkippedAhead(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(time.Second / 2)
		w.schedule(e, "s", "0 * * * * *")
		minute := time.Now().Truncate(time.Minute)
		time.Sleep(time.Until(minute.Add(30 * time.Second)))
		_, err := e.Schedules().Change(w.Context(), "s", func(st decide.State) (row.Decision, error) {
			d, _, err := decide.SkipNext(st, "maintenance")
			return d, err
		})
		w.must(err)
		w.schedule(e, "s", "5 * * * * *")
		time.Sleep(time.Until(minute.Add(57 * time.Second)))
		w.schedule(e, "s", "* * * * * *")
		time.Sleep(10 * time.Second)
		if got := w.history("s"); len(got) < 9 || got[0] != "completed tick" || got[3] != "skipped tick" ||
			got[7] != "completed tick" {
			w.Errorf("the history has %q", got)
		}
	})
}

// Its history keeps one row beside the rows of ticks to come.
func TestAHistoryKeepsEachTickThatIsSkippedAhead(t *testing.T) {
	inBubble(t, func(w *world) {
		const skipped = 60
		e := w.engine(w.store, serving{"a": nothing})
		time.Sleep(time.Second / 2)
		w.schedule(e, "s", "0 * * * * *", delaytask.WithKeepRuns(1))
		for range skipped {
			_, err := e.Schedules().Change(w.Context(), "s", func(st decide.State) (row.Decision, error) {
				d, _, err := decide.SkipNext(st, "maintenance")
				return d, err
			})
			w.must(err)
		}
		w.wantHistory("s", slices.Repeat([]string{"skipped tick"}, skipped)...)
		w.schedule(e, "s", "*/15 * * * * *", delaytask.WithKeepRuns(1))
		time.Sleep(50 * time.Minute)
		const left = 9
		if got := w.history("s"); len(got) < left || slices.Contains(got[len(got)-left:], "completed tick") {
			w.Errorf("%d skipped ticks are to come, and the history has %q", left, got)
		}
	})
}

// At the end of the grace a process releases tasks whose processors go on. The run that has replaced one waits for the
// end of its lease all the same.
func TestAReplacedRunThatOutlastsTheGraceHoldsItsLease(t *testing.T) {
	inBubble(t, func(w *world) {
		first := w.engine(w.store, serving{"a": func(context.Context, *delaytask.Task) error {
			time.Sleep(time.Minute)
			return nil
		}}, func(c *Config) { c.StopGrace = time.Second })
		w.lossy[first] = true
		time.Sleep(time.Second / 2)
		w.schedule(first, "latest", "@every 20s", delaytask.WithOverlap(delaytask.OverlapReplace))
		second := w.engine(w.store, serving{"b": nothing})
		time.Sleep(20 * time.Second)
		time.Sleep(time.Until(w.of("a")[0].Expected.Std()) + 19500*time.Millisecond)
		err := first.Stop(w.Context())
		if !errors.Is(err, delaytask.ErrGraceEnded) {
			w.Fatal(err)
		}
		next := w.of("a")[1]
		time.Sleep(100 * time.Millisecond)
		if now := second.Now(); next.Due <= now || w.of("a")[1].Due != next.Due {
			w.Errorf("at %v the run waits until %v, and then until %v", now, next.Due, w.of("a")[1].Due)
		}
		time.Sleep(time.Minute) // until the processor returns
	})
}

// One of two runs that are replaced together returns sooner than the other one.
func TestOfTwoReplacedRunsTheLastToReturnCounts(t *testing.T) {
	inBubble(t, func(w *world) {
		var running atomic.Int32
		e := w.engine(w.store, serving{"a": func(ctx context.Context, task *delaytask.Task) error {
			if task.Schedule.Cause == delaytask.CauseManual {
				<-ctx.Done()
				return ctx.Err()
			}
			if running.Add(1) > 1 {
				w.Errorf("the run of %v begins beside the one before", task.Schedule.Tick)
			}
			defer running.Add(-1)
			<-ctx.Done()
			time.Sleep(time.Second)
			return ctx.Err()
		}})
		w.lossy[e] = true
		time.Sleep(time.Second / 2)
		w.schedule(e, "latest", "@every 20s", delaytask.WithOverlap(delaytask.OverlapReplace))
		time.Sleep(30 * time.Second)
		_, err := e.Schedules().Change(w.Context(), "latest", func(st decide.State) (row.Decision, error) {
			d, _, err := decide.Trigger(st, true)
			return d, err
		})
		w.must(err)
		time.Sleep(40 * time.Second)
	})
}

// The outage begins before and after the run of the next tick is planted. The process that comes back claims that run
// before it looks at the schedule.
func TestAnOutageThatBeginsAfterPlantingDecidesNothing(t *testing.T) {
	for missed, want := range map[delaytask.Missed][]string{
		delaytask.MissedOnce: {"completed tick", "missed tick ×2", "completed tick"},
		delaytask.MissedSkip: {"completed tick", "missed tick ×2", "completed tick"},
		delaytask.MissedAll:  {"completed tick", "completed late", "completed late", "completed tick"},
	} {
		for _, before := range []time.Duration{5 * time.Second, 20 * time.Second} {
			inBubble(t, func(w *world) {
				e := w.engine(w.store, serving{"a": nothing})
				time.Sleep(time.Second)
				w.schedule(e, "job", "* * * * *", delaytask.WithMissed(missed))
				tick := time.Now().Truncate(time.Minute).Add(2 * time.Minute)
				time.Sleep(time.Until(tick.Add(-before)))
				w.crash(e)
				time.Sleep(time.Until(tick.Add(122 * time.Second)))
				w.engine(w.store, serving{"a": nothing})
				time.Sleep(20 * time.Second)
				got := w.history("job")
				for i := range got {
					got[i], _, _ = strings.Cut(got[i], " +")
				}
				if !slices.Equal(got, want) {
					w.Errorf("%s, %v before the tick: got %q, want %q", missed, before, got, want)
				}
			})
		}
	}
}

func TestAWaitingRunOfAnUnservedTagIsNotTakenBack(t *testing.T) {
	for _, overlap := range []delaytask.Overlap{delaytask.OverlapSkip, delaytask.OverlapQueueOne} {
		inBubble(t, func(w *world) {
			e := w.engine(w.store, nil)
			time.Sleep(time.Second)
			w.schedule(e, "job", "* * * * *", delaytask.WithOverlap(overlap))
			time.Sleep(5*time.Minute + 30*time.Second)
			w.engine(w.store, serving{"a": nothing})
			time.Sleep(5 * time.Second)
			if got := w.history("job"); !strings.HasPrefix(got[0], "completed tick +") {
				w.Errorf("%s: %q", overlap, got)
			}
		})
	}
}

// A run of the deleted schedule executes while a schedule of the name is stored, whose first tick is planted at once.
func TestAScheduleIsStoredWhileARunOfADeletedOneExecutes(t *testing.T) {
	saves := map[string]func(w *world, e *Engine){
		"saved":    func(w *world, e *Engine) { w.schedule(e, "job", "@every 5s") },
		"declared": func(w *world, _ *Engine) { w.version(1, "@every 5s", "job"); time.Sleep(3 * time.Second) },
	}
	inBubbles(t, saves, func(w *world, save func(*world, *Engine)) {
		e := w.engine(w.store, serving{"a": untilEnd(12*time.Second, nil)})
		time.Sleep(time.Second)
		w.schedule(e, "job", "@every 5s")
		time.Sleep(5 * time.Second)
		w.must(e.Schedules().Delete(w.Context(), "job"))
		save(w, e)
		_, err := e.Schedules().Change(w.Context(), "job", func(st decide.State) (row.Decision, error) {
			d, _, err := decide.Trigger(st, false)
			return d, err
		})
		if !errors.Is(err, delaytask.ErrScheduleBusy) {
			w.Error("a trigger beside the old run:", err)
		}
		time.Sleep(20 * time.Second)
		if got := w.history("job"); got[0] != "skipped tick" || !slices.Contains(got, "open tick") {
			w.Errorf("%q", got)
		}
	})
}

// Each plan of a run takes 30 ms. A node plans no more than it has time for in a second, and in the end all.
func TestExpensiveSchedulesArePlannedByTurns(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.idle(w.store, serving{"a": nothing})
		var slow atomic.Bool
		var mu sync.Mutex
		planned, next := map[int64]int{}, e.Schedules().NextID
		e.Schedules().NextID = func() int64 {
			if slow.Load() {
				time.Sleep(30 * time.Millisecond)
				mu.Lock()
				planned[time.Now().Unix()]++
				mu.Unlock()
			}
			return next()
		}
		w.must(e.Start(w.Context()))
		time.Sleep(time.Second)
		for i := range 20 {
			w.schedule(e, fmt.Sprint("job-", i), "* * * * *")
		}
		slow.Store(true)
		time.Sleep(3 * time.Minute)
		for i := range 20 {
			got := w.history(fmt.Sprint("job-", i))
			late := func(line string) bool { return line != "completed tick" && line != "open tick" }
			if len(got) < 3 || slices.ContainsFunc(got, late) {
				w.Errorf("job-%d: %q", i, got)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for second, n := range planned {
			if n > 8 { // two seconds of the budget touch each second of the clock
				w.Errorf("%d runs planned in the second %d", n, second)
			}
		}
	})
}

// slowLook finds schedules slowly.
type slowLook struct{ store.Store }

func (s slowLook) LookAt(ctx context.Context, until, from row.Time, afterID int64, limit int) (
	[]row.Schedule, []row.Broken, error) {
	time.Sleep(5 * time.Second) // a purge comes meanwhile
	return s.Store.LookAt(ctx, until, from, afterID, limit)
}

func TestEndsOfRunsAreCollectedBeforeTheirTasksArePurged(t *testing.T) {
	inBubble(t, func(w *world) {
		time.Sleep(time.Hour - 5*time.Second)
		e := w.idle(w.store, serving{"a": nothing})
		w.schedule(e, "s", "@every 1h")
		w.crash(e)
		time.Sleep(6 * time.Second)
		run := w.of("a")[0]
		run.Status, run.Due = row.Completed, row.At(time.Now())
		w.store.Plant(run) // as if the process had been killed before it saw the end
		time.Sleep(7 * 24 * time.Hour)
		w.engine(slowLook{w.store}, serving{"a": nothing}, func(c *Config) { c.Retention.Completed = 72 * time.Hour })
		time.Sleep(20 * time.Second)
		if w.exists(run.ID) {
			w.Error("the task of the run is not purged")
		}
		if got := w.history("s"); !strings.HasPrefix(got[0], "completed") {
			w.Errorf("history: %q", got)
		}
	})
}
