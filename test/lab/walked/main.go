// Command walked saves tasks and lets them run, and writes which statements that runs: of a save until its timer is
// armed, and of a timer until the result is stored. It is built with -cover, and started by "go run ./test/lab walk".
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/coverage"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

const (
	walks   = 30
	delay   = 400 * time.Millisecond // longer than what a save leaves to do
	lead    = 150 * time.Millisecond // longer than a task is claimed ahead of its time
	settled = 100 * time.Millisecond // longer than the result of a task takes
)

func main() {
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "walked:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string) error {
	s, err := scheduler.Open(ctx, "sqlite:"+filepath.Join(out, "tasks.db"), scheduler.Config{Migrate: true})
	if err != nil {
		return err
	}
	ran := make(chan struct{}, 1)
	process := processor.Func(func(context.Context, *delaytask.Task) error {
		ran <- struct{}{}
		return nil
	})
	if err := s.Register("walk", process); err != nil {
		return err
	}
	if err := s.Start(ctx); err != nil {
		return err
	}
	wait(2 * time.Second) // what a start does is over
	for i := range walks {
		folder := func(name string) string { return filepath.Join(out, fmt.Sprintf("%s.%d", name, i)) }
		if err := walk(ctx, s, ran, folder); err != nil {
			return err
		}
	}
	return s.Stop(ctx)
}

func walk(ctx context.Context, s *scheduler.Scheduler, ran <-chan struct{}, folder func(name string) string) error {
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	saved := time.Now()
	if _, err := s.SaveDelayTask(ctx, "walk", "x", delay); err != nil {
		return err
	}
	wait(20 * time.Millisecond) // the armed timer is looked at
	if err := write(folder("save")); err != nil {
		return err
	}
	wait(time.Until(saved.Add(delay - lead)))
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	<-ran
	wait(settled) // to ask would be another walk
	return write(folder("run"))
}

// wait lets time pass. A task that is asked for, or a channel that the scheduler signals, would be a walk of its own.
func wait(d time.Duration) { <-time.After(d) }

func write(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	if err := coverage.WriteMetaDir(folder); err != nil {
		return err
	}
	return coverage.WriteCountersDir(folder)
}
