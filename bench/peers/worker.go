package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// startWorker starts a process that runs tasks, and returns what it prints: a line for each start.
func (r *run) startWorker(ctx context.Context, flags ...string) (*exec.Cmd, io.Reader, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	worker := exec.CommandContext(ctx, self, append(flags, "-worker", r.system.name, "-dsn", r.dsn)...)
	worker.Stderr = os.Stderr
	out, err := worker.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return worker, out, worker.Start()
}

// workUntilKilled is the worker. It prints the number of each task that it starts, and when. With hold it ends none.
func workUntilKilled(ctx context.Context, name, dsn string, hold bool) error {
	for _, s := range systems {
		if s.name != name {
			continue
		}
		q, err := s.open(ctx, dsn)
		if err != nil {
			return err
		}
		err = q.work(ctx, func(ctx context.Context, t task) error {
			fmt.Println(t.N, time.Now().UnixNano())
			if !hold {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if err != nil {
			return err
		}
		<-ctx.Done()
		q.close()
		return nil
	}
	return fmt.Errorf("no system is called %q", name)
}

// workElsewhere has a process of its own run the tasks, and notes their starts.
func (r *run) workElsewhere(ctx context.Context, s starts) (end func(), err error) {
	worker, out, err := r.startWorker(ctx)
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			var n int
			var at int64
			if _, err := fmt.Fscanln(out, &n, &at); err != nil {
				return
			}
			s.Add(int64(n), time.Unix(0, at))
		}
	}()
	return func() {
		// A worker that is killed leaves a lease of leadership behind, where a system has a leader.
		_ = worker.Process.Signal(os.Interrupt)
		killed := time.AfterFunc(10*time.Second, func() { _ = worker.Process.Kill() })
		defer killed.Stop()
		<-done
		_ = worker.Wait()
	}, nil
}
