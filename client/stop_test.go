package client

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

func TestStopWaitsForWhatRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		c := d.client(t)
		begin(t, c, func(context.Context, *delaytask.Task) error {
			time.Sleep(20 * time.Second)
			_, err := c.Pop(t.Context(), "b", delaytask.PopWait(0)) // it is not closed before
			return err
		})
		d.hand("1.1")
		synctest.Wait()
		start := time.Now()
		err := c.Stop(t.Context())
		if got := d.reported(); err != nil || got != "finish 1.1" || time.Since(start) != 20*time.Second {
			t.Errorf("after %v: %v, %s", time.Since(start), err, got)
		}
		if err := c.Stop(t.Context()); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}

func TestStopReleasesWhatOutlivesTheGrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		c := d.client(t, WithStopGrace(10*time.Second))
		leave := make(chan struct{})
		begin(t, c, func(ctx context.Context, task *delaytask.Task) error {
			<-ctx.Done()
			if !errors.Is(context.Cause(ctx), delaytask.ErrStopping) {
				t.Errorf("the cause is %v", context.Cause(ctx))
			}
			if task.ID == 2 {
				<-leave // it does not look at its context
			}
			return ctx.Err()
		}, processor.Timeout(-1))
		d.hand("1.1", "2.1")
		synctest.Wait()
		start := time.Now()
		err := c.Stop(t.Context())
		if got := d.reported(); !errors.Is(err, delaytask.ErrGraceEnded) || got != "release 1.1, release 2.1" ||
			time.Since(start) != 15*time.Second {
			t.Errorf("after %v: %v, %s", time.Since(start), err, got)
		}
		close(leave)
	})
}

func TestStopEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		c := d.client(t)
		begin(t, c, func(ctx context.Context, _ *delaytask.Task) error { <-ctx.Done(); return nil })
		d.hand("1.1")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := c.Stop(ctx)
		if got := d.reported(); !errors.Is(err, context.DeadlineExceeded) || got != "finish 1.1" {
			t.Errorf("got %v, %s", err, got)
		}
	})
}

func TestASlotIsNotLostToAProcessorThatGoesOn(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, c *Client) {
		leave := make(chan struct{})
		begin(t, c, func(_ context.Context, task *delaytask.Task) error {
			if task.ID == 1 {
				<-leave
			}
			return nil
		})
		d.lost["1.1"] = true
		d.hand("1.1", "2.1")
		time.Sleep(time.Minute)
		if got := d.reported(); got != "finish 2.1" {
			t.Errorf("got %q", got)
		}
		close(leave)
	}, WithConcurrency(1), WithStopGrace(10*time.Second))
}

// An attempt that outlives its timeout and the grace is not renewed for ever: another process gets the task.
func TestALeaseIsNotRenewedForEver(t *testing.T) {
	atDesk(t, func(t *testing.T, d *desk, c *Client) {
		leave := make(chan struct{})
		begin(t, c, func(context.Context, *delaytask.Task) error { <-leave; return nil },
			processor.Timeout(20*time.Second))
		d.hand("1.1")
		time.Sleep(time.Hour)
		d.reported()
		if n := d.touched["1.1"]; n != 5 {
			t.Errorf("%d renewals within 30 s, want 5", n)
		}
		close(leave)
	}, WithStopGrace(10*time.Second))
}

func TestWhatArrivesTooLateIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk()
		c := d.client(t)
		begin(t, c, func(context.Context, *delaytask.Task) error { return nil })
		synctest.Wait()
		d.set(func() { d.late = []string{"1.1", "2.1"} })
		err := c.Stop(t.Context())
		if got := d.reported(); err != nil || got != "release 1.1, release 2.1" && got != "release 2.1, release 1.1" {
			t.Errorf("got %v, %s", err, got)
		}
	})
}
