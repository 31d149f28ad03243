package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

func TestAWorkerTakesAsMuchAsItHasSlotsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		c := d.client(t, WithConcurrency(3))
		next := make(chan struct{})
		var running, most atomic.Int32
		begin(t, c, func(context.Context, *delaytask.Task) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			<-next
			return nil
		})
		d.hand("1.1", "2.1", "3.1", "4.1", "5.1")
		synctest.Wait()
		next <- struct{}{}
		synctest.Wait()
		if got := fmt.Sprint(d.asked); got != "[3 1]" || running.Load() != 3 {
			t.Errorf("asked for %s, %d run", got, running.Load())
		}
		close(next)
		synctest.Wait()
		if err := c.Stop(t.Context()); err != nil || most.Load() != 3 || len(d.ends) != 5 {
			t.Errorf("%v: at most %d ran, %v", err, most.Load(), d.ends)
		}
	})
}

func TestATagThatIsRegisteredLaterIsAskedForAtOnce(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, c *Client) {
		nothing := processor.Func(func(context.Context, *delaytask.Task) error { return nil })
		begin(t, c, nothing)
		synctest.Wait()
		d.set(func() { d.late = []string{"1.1"} })
		mustOK(t, c.Register("b", nothing))
		if got := d.reported(); got != "finish 1.1" || len(d.tags) != 2 {
			t.Errorf("got %q, asked for %v", got, d.tags)
		}
		c.Unregister("a")
		if d.reported(); len(d.tags) != 1 || d.tags[0] != "b" {
			t.Errorf("asked for %v", d.tags)
		}
	})
}

func TestATagHasSlotsOfItsOwn(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, c *Client) {
		begin(t, c, func(context.Context, *delaytask.Task) error { return nil }, processor.Concurrency(2))
		synctest.Wait()
		if got := fmt.Sprint(d.asked); got != "[2]" {
			t.Errorf("asked for %s", got)
		}
	})
}

func TestLeasesAreRenewedWhileTheirTasksRun(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, c *Client) {
		begin(t, c, func(context.Context, *delaytask.Task) error {
			time.Sleep(time.Minute + time.Second)
			return nil
		}, processor.TTR(30*time.Second))
		d.hand("1.1")
		time.Sleep(2 * time.Minute)
		if got := d.reported(); got != "finish 1.1" || d.touched["1.1"] != 6 {
			t.Errorf("got %s after %d renewals, want 6", got, d.touched["1.1"])
		}
	})
}

func TestALostLeaseEndsTheContext(t *testing.T) {
	for name, tt := range map[string]struct {
		lose  func(*desk)
		after time.Duration
	}{
		"refused": {func(d *desk) { d.lost["1.1"] = true }, 5 * time.Second},
		"away":    {func(d *desk) { d.away = true }, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, func(t *testing.T, d *desk, c *Client) {
				ended, cause := time.Duration(0), error(nil)
				begin(t, c, func(ctx context.Context, _ *delaytask.Task) error {
					start := time.Now()
					<-ctx.Done()
					ended, cause = time.Since(start), context.Cause(ctx)
					return ctx.Err()
				})
				d.hand("1.1")
				synctest.Wait()
				d.set(func() { tt.lose(d) })
				time.Sleep(time.Minute)
				d.set(func() { d.away = false })
				time.Sleep(10 * time.Second)
				if got := d.reported(); !errors.Is(cause, delaytask.ErrLeaseLost) || ended != tt.after ||
					got != "release 1.1" {
					t.Errorf("the context ended after %v with %v; %s", ended, cause, got)
				}
			})
		})
	}
}

func TestResultsAreSentUntilTheyAreAnswered(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, c *Client) {
		begin(t, c, func(context.Context, *delaytask.Task) error {
			d.set(func() { d.away = true })
			return nil
		})
		d.hand("1.1")
		time.Sleep(time.Hour)
		d.set(func() { d.away = false })
		time.Sleep(time.Minute)
		if got := d.reported(); got != "finish 1.1" {
			t.Errorf("got %q", got)
		}
	}, WithRetryFor(0))
}

func TestFinishesThatWaitTravelTogether(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, c *Client) {
		d.finishes = make(chan struct{})
		d.lost["3.1"] = true
		begin(t, c, func(_ context.Context, task *delaytask.Task) error {
			time.Sleep(time.Duration(task.ID))
			return nil
		})
		d.hand("1.1", "2.1", "3.1", "4.1")
		time.Sleep(time.Second)
		d.finishes <- struct{}{}
		d.finishes <- struct{}{}
		d.reported()
		if got := fmt.Sprint(d.batches); got != "[1 3]" {
			t.Errorf("batches of %s", got)
		}
	})
}

func TestEveryOutcomeIsReported(t *testing.T) {
	for name, tt := range map[string]struct {
		p    processor.Func
		opts []processor.RegisterOption
		want string
	}{
		"backoff": {func(context.Context, *delaytask.Task) error { return io.EOF },
			[]processor.RegisterOption{processor.RetryBackoff(processor.Constant(time.Hour))}, "fail 1.1 EOF 1h"},
		"snoozed": {func(context.Context, *delaytask.Task) error { return processor.Snooze(time.Minute) }, nil,
			"release 1.1 1m"},
		"handed over": {func(context.Context, *delaytask.Task) error { return processor.HandOver(time.Minute) }, nil,
			""},
		"goexit": {func(context.Context, *delaytask.Task) error { runtime.Goexit(); return nil }, nil,
			"fail 1.1 the processor ended its goroutine with runtime.Goexit"},
		"timeout": {func(ctx context.Context, _ *delaytask.Task) error { <-ctx.Done(); return ctx.Err() },
			[]processor.RegisterOption{processor.Timeout(time.Second)}, "fail 1.1 " + delaytask.ErrTimeout.Error()},
		"an error that panics": {func(context.Context, *delaytask.Task) error { return (*broken)(nil) }, nil,
			"fail 1.1 <nil>"},
		"a backoff that panics": {func(context.Context, *delaytask.Task) error { return io.EOF },
			[]processor.RegisterOption{processor.RetryBackoff(func(int) time.Duration { panic("oh") })},
			"fail 1.1 the processor's error or the backoff of its tag panicked: oh"},
	} {
		t.Run(name, func(t *testing.T) {
			atDesk(t, func(t *testing.T, d *desk, c *Client) {
				begin(t, c, tt.p, tt.opts...)
				d.hand("1.1")
				time.Sleep(4 * time.Second)
				if got := d.reported(); got != tt.want || name == "handed over" && d.touched["1.1"] != 1 {
					t.Errorf("got %q, want %q", got, tt.want)
				}
			})
		})
	}
}

type broken struct{ text string }

func (b *broken) Error() string { return b.text }

func TestAttemptsAreCountedByTheService(t *testing.T) {
	t.Parallel()
	c := newDesk().client(t)
	nothing := processor.Func(func(context.Context, *delaytask.Task) error { return nil })
	if err := c.Register("a", nothing, processor.MaxAttempts(3)); !errors.Is(err, delaytask.ErrInvalidOption) {
		t.Errorf("got %v", err)
	}
	if err := c.Register("a", nothing); err != nil {
		t.Errorf("after a refusal: %v", err)
	}
}
