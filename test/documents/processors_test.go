package documents

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// mailer refuses an empty text, and keeps the others.
type mailer []string

func (m *mailer) Send(_ context.Context, text string) error {
	if text == "" {
		return errors.New("an empty mail")
	}
	*m = append(*m, text)
	return nil
}

func TestProcessorIsAFunction(t *testing.T) {
	t.Parallel()
	var mail mailer
	s := delaytasktest.New(t)
	tasks := s.Scheduler
	send := processor.Func(func(ctx context.Context, task *delaytask.Task) error {
		return mail.Send(ctx, string(task.Body))
	})
	err := tasks.Register("mail.send", send, processor.Concurrency(8), processor.Timeout(time.Minute))
	servertest.OK(t, err)
	save(t, tasks, "mail.send", "hello")
	s.Advance(0)
	wantMails(t, mail, "hello")
}

func save(t *testing.T, tasks *scheduler.Scheduler, tag, body string) (id int64) {
	t.Helper()
	id, err := tasks.SaveDelayTask(t.Context(), tag, body, 0)
	servertest.OK(t, err)
	return id
}

func wantMails(t *testing.T, got mailer, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the mails are %q, want %q", got, want)
	}
}

type closed []int

func (c *closed) Close(_ context.Context, number int) error {
	*c = append(*c, number)
	return nil
}

func TestKindTiesATagToAType(t *testing.T) {
	t.Parallel()
	var orders closed
	ctx, s := t.Context(), delaytasktest.New(t)
	tasks := s.Scheduler
	var CloseOrder = processor.NewKind[order]("order.close", delaytask.WithMaxAttempts(5))

	err := CloseOrder.Process(tasks, func(ctx context.Context, task *delaytask.Task, o order) error {
		return orders.Close(ctx, o.Number)
	})
	servertest.OK(t, err)
	id, err := CloseOrder.Save(ctx, tasks, order{Number: 42}, 30*time.Minute)
	servertest.OK(t, err)
	if runs := s.Advance(30 * time.Minute); len(runs) != 1 || runs[0].ID != id || !slices.Equal(orders, closed{42}) {
		t.Errorf("it ran %v and closed %v", runs, orders)
	}
}

func TestDebounceBuildsOnceAfterTheLastChange(t *testing.T) {
	t.Parallel()
	type named struct{ Name string }
	ctx, s := t.Context(), delaytasktest.New(t)
	tasks, page := s.Scheduler, named{"start"}
	change := func() error {
		_, err := tasks.SaveDelayTask(ctx, "index.build", page, 10*time.Second, delaytask.WithKey(page.Name),
			delaytask.WithOnConflict(delaytask.ReplaceTimeAndBody), delaytask.WithMaxWait(5*time.Minute))
		if errors.Is(err, delaytask.ErrNotPending) { // it builds already, perhaps without this change
			_, err = tasks.SaveDelayTask(ctx, "index.build", page, 10*time.Second, delaytask.WithKey(page.Name+" next"),
				delaytask.WithOnConflict(delaytask.ReplaceTimeAndBody))
		}
		return err
	}
	var built []string
	servertest.OK(t, tasks.Register("index.build", processor.Func(func(_ context.Context, task *delaytask.Task) error {
		if built = append(built, task.Key); len(built) > 1 {
			return nil
		}
		return change()
	})))
	var begun []time.Duration
	for at := time.Duration(0); at < 6*time.Minute; at += 5 * time.Second {
		if at < 5*time.Minute {
			servertest.OK(t, change())
		}
		for range s.Advance(5 * time.Second) {
			begun = append(begun, at+5*time.Second)
		}
	}
	if !slices.Equal(begun, []time.Duration{5 * time.Minute, 5*time.Minute + 10*time.Second}) ||
		!slices.Equal(built, []string{"start", "start next"}) {
		t.Errorf("built %v at %v", built, begun)
	}
}

func TestThrottleStoresTheFirstOfAMinute(t *testing.T) {
	t.Parallel()
	ctx, tasks := t.Context(), delaytasktest.New(t).Scheduler
	make := func() error {
		_, err := tasks.SaveDelayTask(ctx, "report.make", nil, 0, delaytask.WithKey("report"),
			delaytask.WithTime(time.Now().Truncate(time.Minute).Add(time.Minute)))
		return err
	}
	servertest.OK(t, make())
	if err := make(); !errors.Is(err, delaytask.ErrDuplicate) {
		t.Errorf("the second save of the minute says %v", err)
	}
}

func TestMiddlewareGoesAroundAProcessor(t *testing.T) {
	t.Parallel()
	var attempts atomic.Int64
	var mail mailer
	var written bytes.Buffer
	log, s := slog.New(slog.NewTextHandler(&written, nil)), delaytasktest.New(t)
	tasks, send := s.Scheduler, processor.Func(func(ctx context.Context, task *delaytask.Task) error {
		return mail.Send(ctx, string(task.Body))
	})
	count := func(next processor.Processor) processor.Processor {
		return processor.Func(func(ctx context.Context, task *delaytask.Task) error {
			err := next.Process(ctx, task)
			attempts.Add(1)
			return err
		})
	}
	err := tasks.Register("mail.send", send, processor.Use(count, processor.Logging(log)))
	servertest.OK(t, err)
	save(t, tasks, "mail.send", "hello")
	s.Advance(0)
	if n := attempts.Load(); n != 1 || !strings.Contains(written.String(), "tag=mail.send") {
		t.Errorf("%d attempts, logged %s", n, &written)
	}
}

func TestFailedTasksAreSeenByAWaitAndASubscription(t *testing.T) {
	t.Parallel()
	ctx, tasks := t.Context(), servertest.Open(t, embedded(t), scheduler.Config{})
	var mail mailer
	servertest.OK(t, tasks.Register("mail.send", processor.Func(func(ctx context.Context, task *delaytask.Task) error {
		return processor.Permanent(mail.Send(ctx, string(task.Body)))
	})))
	servertest.OK(t, tasks.Start(ctx))
	var written servertest.Log
	log := slog.New(slog.NewTextHandler(&written, nil))

	watch := func() error {
		failures, err := tasks.Subscribe(delaytask.SubscribeConfig{Kinds: []delaytask.EventKind{delaytask.EventFailed}})
		if err != nil {
			return err
		}
		for event := range failures.Events() { // until Close or Stop
			log.Error("failed", "tag", event.Tag, "task", event.ID, "err", event.Err)
		}
		return nil
	}
	watched := make(chan error, 1)
	go func() { watched <- watch() }()
	wait := func(id int64) error {
		task, err := tasks.Wait(ctx, id) // ErrNotFound, or why ctx ended
		if err == nil && task.Status == delaytask.Failed {
			log.Warn("no invoice", "task", id, "err", task.LastError())
		}
		return err
	}
	servertest.Eventually(t, "a failure is told", func() bool { // once the subscription is there
		servertest.OK(t, wait(save(t, tasks, "mail.send", "")))
		return strings.Contains(written.String(), `msg=failed tag=mail.send`)
	})
	if !strings.Contains(written.String(), `msg="no invoice"`) {
		t.Errorf("logged %s", &written)
	}
	servertest.Stop(t, tasks)
	servertest.OK(t, servertest.Receive(t, watched, "the subscription ends"))
}

func TestTasksAreTakenByHand(t *testing.T) {
	t.Parallel()
	ctx, tasks := t.Context(), servertest.Open(t, embedded(t), scheduler.Config{})
	servertest.OK(t, tasks.Start(ctx))
	var mail mailer
	take := func() error {
		popped, err := tasks.Pop(ctx, "mail.send", delaytask.PopMax(50), delaytask.PopWait(30*time.Second))
		for _, p := range popped {
			if failed := mail.Send(ctx, string(p.Body)); failed != nil {
				err = errors.Join(err, p.Fail(ctx, failed)) // an attempt; p.Release gives the task back without one
			} else {
				err = errors.Join(err, p.Finish(ctx))
			}
		}
		return err
	}
	good, bad := save(t, tasks, "mail.send", "hello"), save(t, tasks, "mail.send", "")
	for len(mail) == 0 || statusOf(t, tasks, bad) == "pending 0" {
		servertest.OK(t, take())
	}
	wantMails(t, mail, "hello")
	for id, want := range map[int64]string{good: "completed 1", bad: "pending 1"} {
		if got := statusOf(t, tasks, id); got != want {
			t.Errorf("task %d is %s, want %s", id, got, want)
		}
	}
}

// statusOf returns the status and the attempt.
func statusOf(t *testing.T, tasks *scheduler.Scheduler, id int64) string {
	t.Helper()
	task, err := tasks.Get(t.Context(), delaytask.ID(id))
	servertest.OK(t, err)
	return fmt.Sprint(task.Status, " ", task.Attempt)
}

func TestAnyProcessEndsATaskByItsToken(t *testing.T) {
	t.Parallel()
	ctx, tasks := t.Context(), servertest.Open(t, embedded(t), scheduler.Config{})
	servertest.OK(t, tasks.Start(ctx))
	id := save(t, tasks, "mail.send", "hello")
	popped, err := tasks.Pop(ctx, "mail.send", delaytask.PopWait(30*time.Second))
	servertest.OK(t, err)
	end := func(text string) error {
		token, err := delaytask.ParseToken(text)
		if err == nil {
			err = tasks.Finish(ctx, token) // Fail, Release and Touch take it too
		}
		return err
	}
	servertest.OK(t, end(popped[0].Token().String()))
	if got := statusOf(t, tasks, id); got != "completed 1" {
		t.Errorf("the task is %s", got)
	}
}

// shop closes orders that are not paid within half an hour.
type shop struct {
	tasks  *scheduler.Scheduler
	closed closed
}

func newShop(tasks *scheduler.Scheduler) *shop {
	s := &shop{tasks: tasks}
	_ = tasks.Register("order.close", processor.Typed(func(ctx context.Context, _ *delaytask.Task, number int) error {
		return s.closed.Close(ctx, number)
	}))
	return s
}

func (s *shop) order(ctx context.Context, number int) {
	_, _ = s.tasks.SaveDelayTask(ctx, "order.close", number, 30*time.Minute)
}

func TestUnpaidOrderIsClosed(t *testing.T) {
	s := delaytasktest.New(t)
	shop := newShop(s.Scheduler) // registers and saves as it always does

	shop.order(t.Context(), 7)
	s.RequireSaved(t, "order.close", delaytasktest.Body(7), delaytasktest.Delay(30*time.Minute))
	s.Advance(30 * time.Minute) // runs all that falls due, in order, retries too
	if !slices.Equal(shop.closed, []int{7}) {
		t.Errorf("closed %v, want order 7", shop.closed)
	}
}
