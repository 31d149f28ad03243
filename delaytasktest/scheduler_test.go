package delaytasktest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func start(t *testing.T, cfg ...scheduler.Config) *delaytasktest.Scheduler {
	t.Helper()
	opts := []delaytasktest.Option{delaytasktest.StartAt(noon)}
	for _, c := range cfg {
		opts = append(opts, delaytasktest.WithConfig(c))
	}
	return delaytasktest.New(t, opts...)
}

func register(
	t *testing.T, s *delaytasktest.Scheduler, tag string, p processor.Func, opts ...processor.RegisterOption,
) {
	t.Helper()
	mustOK(t, s.Register(tag, p, opts...))
}

func save(t *testing.T, s *delaytasktest.Scheduler, tag string, delay time.Duration, opts ...delaytask.Option) int64 {
	t.Helper()
	id, err := s.SaveDelayTask(t.Context(), tag, tag, delay, opts...)
	mustOK(t, err)
	return id
}

func nothing(context.Context, *delaytask.Task) error { return nil }

func TestNothingRunsUntilItsVeryMoment(t *testing.T) {
	t.Parallel()
	s := start(t)
	var at time.Time
	register(t, s, "t", func(_ context.Context, task *delaytask.Task) error {
		at = s.Now()
		return nil
	})
	id := save(t, s, "t", time.Hour)
	if runs := s.Advance(time.Hour - time.Microsecond); len(runs) != 0 {
		t.Errorf("ran early: %v", runs)
	}
	want := delaytasktest.Run{ID: id, Tag: "t", Attempt: 1, At: noon.Add(time.Hour), Status: delaytask.Completed}
	if runs := s.Advance(time.Hour); len(runs) != 1 || runs[0] != want {
		t.Errorf("got %v, want %v", runs, want)
	}
	if !at.Equal(want.At) || !s.Now().Equal(noon.Add(2*time.Hour-time.Microsecond)) {
		t.Errorf("the processor saw %v, and afterwards it is %v", at, s.Now())
	}
	task := s.RequireSaved(t, "t")
	if !task.Started.Equal(want.At) || !task.Finished.Equal(want.At) || !task.Created.Equal(noon) ||
		task.Lateness() != 0 {
		t.Errorf("the row says %+v", task)
	}
}

func TestTasksRunInOrder(t *testing.T) {
	t.Parallel()
	s := start(t)
	var order []string
	note := func(_ context.Context, task *delaytask.Task) error {
		order = append(order, string(task.Body))
		return nil
	}
	for _, tag := range []string{"later", "first", "second", "urgent"} {
		register(t, s, tag, note)
	}
	save(t, s, "later", 2*time.Second)
	save(t, s, "first", time.Second)
	save(t, s, "second", time.Second)
	save(t, s, "urgent", time.Second, delaytask.WithPriority(5))
	s.Advance(time.Minute)
	if want := []string{"urgent", "first", "second", "later"}; !slices.Equal(order, want) {
		t.Errorf("got %v, want %v", order, want)
	}
}

func TestEveryOutcomeIsFollowed(t *testing.T) {
	t.Parallel()
	var failed []string
	s := start(t, scheduler.Config{MaxAttempts: 2, OnFailed: func(_ context.Context, task *delaytask.Task, err error) {
		failed = append(failed, fmt.Sprintf("%s: %v", task.Tag, err))
	}})
	snoozed := false
	register(t, s, "snoozes", func(context.Context, *delaytask.Task) error {
		if snoozed {
			return nil
		}
		snoozed = true
		return processor.Snooze(time.Minute)
	})
	register(t, s, "waits", func(_ context.Context, task *delaytask.Task) error {
		if task.Attempt == 2 {
			return nil
		}
		return processor.RetryAfter(errors.New("busy"), time.Hour)
	})
	register(t, s, "panics", func(context.Context, *delaytask.Task) error { panic("index out of range") })
	register(t, s, "follows", func(ctx context.Context, _ *delaytask.Task) error {
		_, err := s.SaveDelayTask(ctx, "snoozes", nil, 0)
		return err
	})
	save(t, s, "waits", 0)
	save(t, s, "panics", 0)
	save(t, s, "follows", 0)
	var got []string
	for _, run := range s.Advance(2 * time.Hour) {
		got = append(got, fmt.Sprintf("%s %d %v %s", run.Tag, run.Attempt, run.At.Sub(noon), run.Status))
	}
	want := []string{
		"waits 1 0s pending", "panics 1 0s pending", "follows 1 0s completed", "snoozes 1 0s pending",
		"panics 2 1s failed", "snoozes 1 1m0s completed", "waits 2 1h0m0s completed",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if len(failed) != 1 || failed[0] != "panics: panic: index out of range" {
		t.Errorf("OnFailed got %v", failed)
	}
}

func TestHandedOverTaskIsEndedByItsToken(t *testing.T) {
	t.Parallel()
	s := start(t)
	var token delaytask.Token
	register(t, s, "t", func(_ context.Context, task *delaytask.Task) error {
		token = delaytask.Token{ID: task.ID, Version: task.Version}
		return processor.HandOver(time.Hour)
	})
	id := save(t, s, "t", time.Minute)
	s.Advance(30 * time.Minute)
	if task, err := s.Get(t.Context(), delaytask.ID(id)); err != nil || task.Status != delaytask.Executing {
		t.Fatalf("got %+v, %v", task, err)
	}
	mustOK(t, s.Touch(t.Context(), token, time.Hour))
	mustOK(t, s.Fail(t.Context(), token, errors.New("not now")))
	old := token
	s.Advance(time.Minute)
	if answers, err := s.FinishAll(t.Context(), []delaytask.Token{old, token}); err != nil ||
		!errors.Is(answers[0], delaytask.ErrLeaseLost) || answers[1] != nil {
		t.Fatalf("got %v, %v", answers, err)
	}
	task, err := s.Get(t.Context(), delaytask.ID(id))
	if err != nil || task.Status != delaytask.Completed || task.Attempt != 2 ||
		!task.Started.Equal(noon.Add(time.Minute)) {
		t.Errorf("got %+v, %v", task, err)
	}
}

func TestHandedOverTaskComesBackWhenItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	s := start(t)
	register(t, s, "t", func(_ context.Context, task *delaytask.Task) error {
		if task.Attempt == 1 {
			return processor.HandOver(time.Minute)
		}
		return nil
	})
	save(t, s, "t", time.Minute)
	save(t, s, "t", 2*time.Minute)
	var at []time.Duration
	for _, run := range s.Advance(time.Hour) {
		at = append(at, run.At.Sub(noon))
	}
	over := time.Microsecond // when a lease is over, it has ended
	want := []time.Duration{time.Minute, 2 * time.Minute, 2*time.Minute + over, 3*time.Minute + over}
	if !slices.Equal(at, want) {
		t.Errorf("got %v, want %v", at, want)
	}
}

func TestTransactionsAreOverlooked(t *testing.T) {
	t.Parallel()
	s := start(t)
	tx := new(sql.Tx) // as a mock would hand out
	register(t, s, "t", func(ctx context.Context, _ *delaytask.Task) error { return processor.CompleteTx(ctx, tx) })
	id, err := s.SaveDelayTaskTx(t.Context(), tx, "t", nil, time.Hour)
	mustOK(t, err)
	if _, err := s.RescheduleTx(t.Context(), tx, delaytask.ID(id), time.Minute); err != nil {
		t.Fatal(err)
	}
	if _, err := s.SaveDelayTaskTx(t.Context(), new(sql.DB), "t", nil, 0); !errors.Is(err, delaytask.ErrNoTransaction) {
		t.Errorf("a pool: got %v, want %v", err, delaytask.ErrNoTransaction)
	}
	if runs := s.Advance(time.Minute); len(runs) != 1 || runs[0].Status != delaytask.Completed {
		t.Errorf("got %v", runs)
	}
}

func TestControlsWorkOnTheTestsTime(t *testing.T) {
	t.Parallel()
	s := start(t)
	register(t, s, "t", nothing)
	id := save(t, s, "t", time.Hour, delaytask.WithKey("k"))
	if _, err := s.Reschedule(t.Context(), delaytask.Key("t", "k"), 3*time.Hour); err != nil {
		t.Fatal(err)
	}
	s.RequireSaved(t, "t", delaytasktest.ExpectedAt(noon.Add(3*time.Hour)), delaytasktest.Delay(3*time.Hour))
	if runs := s.RunDue(noon.Add(2 * time.Hour)); len(runs) != 0 {
		t.Errorf("ran at its old time: %v", runs)
	}
	if _, err := s.Cancel(t.Context(), delaytask.ID(id)); err != nil {
		t.Fatal(err)
	}
	if runs := s.Advance(24 * time.Hour); len(runs) != 0 {
		t.Errorf("ran though cancelled: %v", runs)
	}
	task := s.RequireSaved(t, "t", delaytasktest.Status(delaytask.Cancelled))
	if !task.Finished.Equal(noon.Add(2 * time.Hour)) {
		t.Errorf("cancelled at %v", task.Finished)
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestSchedulerWorksInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := delaytasktest.New(t)
		register(t, s, "t", nothing)
		save(t, s, "t", time.Hour)
		if runs := s.Advance(time.Hour); len(runs) != 1 {
			t.Errorf("got %v", runs)
		}
	})
}

// recorder is a test that may fail without harm.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	panic(r)
}

// failing returns what f fails its test with.
func failing(t *testing.T, f func(tb testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	func() {
		defer func() {
			if v := recover(); v != nil && v != any(r) {
				panic(v)
			}
		}()
		f(r)
	}()
	return r.failure
}

func TestMatchersSayWhatIsMissing(t *testing.T) {
	t.Parallel()
	s := start(t)
	save(t, s, "t", time.Hour, delaytask.WithKey("a"), delaytask.WithHeader("trace", "x"))
	save(t, s, "t", time.Minute)
	if _, err := s.SaveDelayTask(t.Context(), "json", map[string]int{"b": 2, "a": 1}, 0); err != nil {
		t.Fatal(err)
	}
	yes := func(tag string, matchers ...delaytasktest.Matcher) {
		t.Helper()
		s.RequireSaved(t, tag, matchers...)
		failure := failing(t, func(tb testing.TB) { s.RequireNotSaved(tb, tag, matchers...) })
		if !strings.Contains(failure, "1 tasks were saved with tag "+tag) {
			t.Errorf("not saved: %q", failure)
		}
	}
	no := func(text, tag string, matchers ...delaytasktest.Matcher) {
		t.Helper()
		s.RequireNotSaved(t, tag, matchers...)
		failure := failing(t, func(tb testing.TB) { s.RequireSaved(tb, tag, matchers...) })
		if !strings.Contains(failure, text) {
			t.Errorf("got %q, want it to say %q", failure, text)
		}
	}
	yes("t", delaytasktest.Key("a"), delaytasktest.Delay(time.Hour), delaytasktest.Header("trace", "x"))
	yes("t", delaytasktest.Key(""), delaytasktest.ExpectedAt(noon.Add(time.Minute)), delaytasktest.Body("t"))
	yes("json", delaytasktest.Body(`{ "a": 1, "b": 2 }`), delaytasktest.Status(delaytask.Pending))
	yes("t", delaytasktest.Where("an hour or more",
		func(task delaytask.TaskRow) bool { return task.Delay >= time.Hour }))
	no(`with tag t, key "b", want 1; of the tag there are:`, "t", delaytasktest.Key("b"))
	no("body other", "t", delaytasktest.Body("other"))
	no("no task of tag u was saved at all", "u")
	if n := len(s.Saved(t, "t")); n != 2 {
		t.Errorf("%d tasks of the tag, want 2", n)
	}
}

func TestMistakesWithTheClockFailTheTest(t *testing.T) {
	t.Parallel()
	endless := failing(t, func(tb testing.TB) {
		s := delaytasktest.New(tb)
		register(t, s, "t", func(ctx context.Context, _ *delaytask.Task) error {
			_, err := s.SaveDelayTask(ctx, "t", nil, 0)
			return err
		})
		save(t, s, "t", 0)
		s.Advance(0)
	})
	if !strings.Contains(endless, "processor of tag t save its own task without a delay?") {
		t.Errorf("endless: %q", endless)
	}
	nested := failing(t, func(tb testing.TB) {
		s := delaytasktest.New(tb)
		register(t, s, "t", func(context.Context, *delaytask.Task) error {
			s.Advance(0)
			return nil
		})
		save(t, s, "t", 0)
		s.Advance(0)
	})
	if !strings.Contains(nested, "called while tasks run") {
		t.Errorf("nested: %q", nested)
	}
	invalid := failing(t, func(tb testing.TB) {
		delaytasktest.New(tb, delaytasktest.WithConfig(scheduler.Config{Concurrency: -1}))
	})
	if !strings.Contains(invalid, "Concurrency is -1") {
		t.Errorf("invalid: %q", invalid)
	}
}

func TestProcessorMayEndTheTest(t *testing.T) {
	t.Parallel()
	s := start(t)
	register(t, s, "t", func(context.Context, *delaytask.Task) error {
		runtime.Goexit() // as t.Fatal does
		return nil
	})
	save(t, s, "t", 0)
	var wg sync.WaitGroup
	wg.Go(func() { s.Advance(0) })
	wg.Wait()
	if task := s.RequireSaved(t, "t"); task.Status != delaytask.Pending || len(task.Errors) != 1 {
		t.Errorf("got %+v", task)
	}
}

// mustOK ends the test when err is not nil.
func mustOK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTicksOfSchedulesRun(t *testing.T) {
	t.Parallel()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	s := delaytasktest.New(t, delaytasktest.StartAt(time.Date(2027, 3, 26, 12, 0, 0, 0, berlin)))
	var ticks []string
	note := func(_ context.Context, task *delaytask.Task) error {
		of := task.Schedule
		ticks = append(ticks, fmt.Sprintf("%s %s %d", of.Tick.Format("02 15:04"), of.Cause, of.Missed))
		return nil
	}
	if err := s.Register("report", processor.Func(note)); err != nil {
		t.Fatal(err)
	}
	err = s.DeclareSchedule("nightly", delaytask.Cron("30 2 * * *", "Europe/Berlin"), "report", "body")
	if err != nil {
		t.Fatal(err)
	}
	s.Advance(3 * 24 * time.Hour)
	s.Outage(7 * 24 * time.Hour)
	s.Advance(24 * time.Hour)
	want := []string{"27 02:30 tick 0", "28 03:00 tick 0", "29 02:30 tick 0", "05 02:30 late 6", "06 02:30 tick 0"}
	if !slices.Equal(ticks, want) {
		t.Errorf("\n got %q\nwant %q", ticks, want)
	}
}
