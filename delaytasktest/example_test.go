package delaytasktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// CloseOrder has the number of an order as its body.
var CloseOrder = processor.NewKind[int]("order.close")

// shop is the code under test. It takes the scheduler that production hands it.
type shop struct {
	tasks  *scheduler.Scheduler
	paid   map[int]bool
	closed []int
	down   int // how many more calls of the warehouse fail
}

func newShop(tasks *scheduler.Scheduler) *shop {
	s := &shop{tasks: tasks, paid: map[int]bool{}}
	if err := CloseOrder.Process(tasks, s.close); err != nil {
		panic(err)
	}
	return s
}

func (s *shop) order(ctx context.Context, number int) error {
	_, err := CloseOrder.Save(ctx, s.tasks, number, 30*time.Minute, delaytask.WithKey(fmt.Sprint(number)))
	return err
}

func (s *shop) close(_ context.Context, _ *delaytask.Task, number int) error {
	if s.down > 0 {
		s.down--
		return errors.New("the warehouse does not answer")
	}
	if !s.paid[number] {
		s.closed = append(s.closed, number)
	}
	return nil
}

// A test moves the clock by half an hour in no time, and sees each attempt.
func Example() {
	t := new(testing.T) // the test's own
	s := delaytasktest.New(t, delaytasktest.StartAt(time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)))
	shop := newShop(s.Scheduler)
	shop.down = 2

	if err := shop.order(context.Background(), 7); err != nil {
		t.Fatal(err)
	}
	task := delaytasktest.RequireSavedOf(t, s, CloseOrder, delaytasktest.Delay(30*time.Minute))
	fmt.Println(task.Body, task.Key, task.Status, task.Expected.Format(time.TimeOnly))

	fmt.Println(len(s.Advance(29*time.Minute)), "runs in 29 minutes")
	for _, run := range s.Advance(2 * time.Minute) {
		fmt.Println(run.At.Format(time.TimeOnly), run.Attempt, run.Err, run.Status)
	}
	fmt.Println("closed:", shop.closed)
	// Output:
	// 7 7 pending 12:30:00
	// 0 runs in 29 minutes
	// 12:30:00 1 the warehouse does not answer pending
	// 12:30:01 2 the warehouse does not answer pending
	// 12:30:03 3 <nil> completed
	// closed: [7]
}

// A processor that takes too long: what it calls moves the clock by the time that it takes.
func ExampleScheduler_Outage() {
	t := new(testing.T) // the test's own
	s := delaytasktest.New(t)
	warehouse := func(ctx context.Context) error {
		s.Outage(5 * time.Minute) // the default timeout of an attempt
		<-ctx.Done()
		return ctx.Err()
	}
	ship := func(ctx context.Context, _ *delaytask.Task) error { return warehouse(ctx) }
	if err := s.Register("order.ship", processor.Func(ship)); err != nil {
		t.Fatal(err)
	}

	begin := s.Now()
	if _, err := s.SaveDelayTask(context.Background(), "order.ship", 7, time.Hour); err != nil {
		t.Fatal(err)
	}
	for _, run := range s.Advance(time.Hour) {
		fmt.Println(run.At.Sub(begin), run.Err, run.Status)
	}
	fmt.Println(s.Now().Sub(begin))
	// Output:
	// 1h0m0s context deadline exceeded pending
	// 1h5m0s
}

// The same in a bubble of testing/synctest: the clock moves by itself when the processor waits and nothing else runs.
func TestTimeoutInABubble(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := delaytasktest.New(t)
		register(t, s, "order.ship", func(ctx context.Context, _ *delaytask.Task) error {
			<-ctx.Done()
			return ctx.Err()
		}, processor.Timeout(time.Minute))

		begin := s.Now()
		save(t, s, "order.ship", time.Hour)
		runs := s.Advance(time.Hour)
		if len(runs) != 1 || !errors.Is(runs[0].Err, context.DeadlineExceeded) {
			t.Errorf("got %v, want one attempt that has timed out", runs)
		}
		if took := s.Now().Sub(begin); took != time.Hour+time.Minute {
			t.Errorf("%v have passed, want an hour and a minute", took)
		}
	})
}
