package delaytask

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask/processor"
)

func TestStartAndStopMayBeCalledAgain(t *testing.T) {
	t.Parallel()
	f := open(t)
	for range 2 {
		if err := f.Start(t.Context()); err != nil {
			t.Errorf("start: %v", err)
		}
	}
	for range 2 {
		if err := f.Stop(t.Context()); err != nil {
			t.Errorf("stop: %v", err)
		}
	}
}

func TestAfterStopEverythingIsClosed(t *testing.T) {
	t.Parallel()
	f := open(t)
	if err := f.Stop(t.Context()); err != nil { // before any Start
		t.Fatal(err)
	}
	_, save := f.SaveDelayTask(t.Context(), "t", nil, 0)
	_, all := f.SaveDelayTasks(t.Context(), []Item{{Tag: "t"}})
	_, get := f.Get(t.Context(), ID(1))
	_, cancel := f.Cancel(t.Context(), ID(1))
	for name, err := range map[string]error{
		"SaveDelayTask": save, "SaveDelayTasks": all, "Get": get, "Cancel": cancel,
		"Start": f.Start(t.Context()), "Register": f.Register("t", processor.Func(nothing)), "Ready": f.Ready(t.Context()),
	} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s: got %v, want %v", name, err, ErrClosed)
		}
	}
}

func TestTagMayBeRegisteredAfterStart(t *testing.T) {
	t.Parallel()
	f := open(t)
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := f.SaveDelayTask(t.Context(), "t", nil, 0); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	f.serve(t, "t", func(context.Context, *processor.Task) error {
		close(done)
		return nil
	})
	<-done
}

func TestSchedulerThatWasNotStartedSavesForOthers(t *testing.T) {
	t.Parallel()
	f := open(t)
	id, err := f.SaveDelayTask(t.Context(), "t", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Ready(t.Context()); err != nil {
		t.Errorf("not ready: %v", err)
	}
	if task := f.get(t, id); task.Status != Pending {
		t.Errorf("the task is %s", task.Status)
	}
}

func TestProcessorSavesWhatFollowsWhileTheSchedulerStops(t *testing.T) {
	t.Parallel()
	f := open(t)
	db := f.pool(t)
	running, stopping, saved := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	f.serve(t, "t", func(ctx context.Context, _ *processor.Task) error {
		close(running)
		<-stopping
		_, err := f.SaveDelayTask(ctx, "next", nil, time.Hour)
		saved <- err
		return err
	})
	if _, err := f.SaveDelayTask(t.Context(), "t", nil, 0); err != nil {
		t.Fatal(err)
	}
	<-running
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := f.Stop(t.Context()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	for !errors.Is(f.Start(t.Context()), ErrClosed) { // until the stop has begun
		runtime.Gosched()
	}
	close(stopping)
	if err := <-saved; err != nil {
		t.Errorf("save: %v", err)
	}
	wg.Wait()
	var completed, pending int
	const counts = "SELECT sum(status = 1), sum(status = 0) FROM delay_task_message"
	if err := db.QueryRowContext(t.Context(), counts).Scan(&completed, &pending); err != nil || completed != 1 || pending != 1 {
		t.Errorf("%d completed and %d pending, %v; want 1 and 1", completed, pending, err)
	}
}

func TestPoolOfTheApplicationStaysOpen(t *testing.T) {
	t.Parallel()
	db := pool(t, filepath.Join(t.TempDir(), "app.db"))
	if _, err := New(t.Context(), db, Config{}); err == nil || !strings.Contains(err.Error(), "migrate") {
		t.Errorf("without tables: got %v, want an error that says how to migrate", err)
	}
	s, err := New(t.Context(), db, Config{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := db.PingContext(t.Context()); err != nil {
		t.Errorf("after Stop: %v", err)
	}
}

func TestOpenSaysWhatIsWrongWithoutThePassword(t *testing.T) {
	t.Parallel()
	for _, dsn := range []string{
		"", "sqlite:", "sqlite::memory:", "postgres://u:secret@h/db", "u:secret@tcp(127.0.0.1:1)/db",
		"mysql://u:secret@127.0.0.1:1/db", "secret",
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		s, err := Open(ctx, dsn, Config{})
		cancel()
		if s != nil || err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: got %v, %v", dsn, s, err)
		}
	}
}

// Start, Register, saves and two Stops meet in every order; none hangs, and what was accepted is stored.
func TestStartsSavesAndStopsInAnyOrder(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tasks.db")
	var mu sync.Mutex
	var accepted []int64
	for round := range 15 {
		s, err := Open(t.Context(), "sqlite:"+file, Config{Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		calls := []func(){
			func() { _ = s.Start(t.Context()) },
			func() { _ = s.Register("t", processor.Func(nothing)) },
			func() {
				id, err := s.SaveDelayTask(t.Context(), "t", round, rand.N(20*time.Millisecond))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					accepted = append(accepted, id)
				case !errors.Is(err, ErrClosed):
					t.Errorf("save: %v", err)
				}
			},
			func() { stopOK(t, s) },
			func() { stopOK(t, s) },
		}
		rand.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		var wg sync.WaitGroup
		for _, call := range calls {
			wg.Go(call)
		}
		wg.Wait()
	}
	db := pool(t, file)
	for _, id := range accepted {
		var status int
		err := db.QueryRowContext(t.Context(), "SELECT status FROM delay_task_message WHERE id = ?", id).Scan(&status)
		if err != nil || status != 0 && status != 1 {
			t.Errorf("task %d has status %d, %v; want pending or completed", id, status, err)
		}
	}
}

func stopOK(t *testing.T, s *Scheduler) {
	t.Helper()
	if err := s.Stop(context.Background()); err != nil { // the test's context has ended before its cleanup
		t.Errorf("stop: %v", err)
	}
}
