//go:build unix

package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// Everything at once on the smallest pool for a concurrency of four: saves with and without keys, one that waits for a
// transaction with its key, transactions of the application, a task that another transaction locks, renewals, and
// completions.
func TestAConcurrencyOfFourWorksOnSixConnections(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		small, others := pool(t, d), pool(t, d)
		small.SetMaxOpenConns(6)
		s, err := scheduler.New(t.Context(), small, config(t, func(cfg *scheduler.Config) { cfg.Concurrency = 4 }))
		servertest.OK(t, err)
		defer servertest.Stop(t, s)
		slow, running, letGo := holding()
		servertest.OK(t, s.Register("slow", slow))
		p, ran := ids()
		serve(t, s, "t", func(ctx context.Context, task *delaytask.Task) error {
			if task.Key == "" {
				return p(ctx, task)
			}
			tx, err := small.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback()
			return errors.Join(processor.CompleteTx(ctx, tx), tx.Commit(), p(ctx, task))
		}, processor.Concurrency(2))
		renewed := save(t, s, "slow", 0, delaytask.WithTTR(3*time.Second))
		servertest.Receive(t, running, "slow task runs")
		const lease = "SELECT due_time > create_time + INTERVAL 6 SECOND FROM delay_task_message WHERE id = ?"

		locked := save(t, s, "t", 2*time.Second)
		long := begin(t, others)
		execute(t, long, "UPDATE delay_task_message SET priority = 1 WHERE id = ?", locked)
		taken, err := s.SaveDelayTaskTx(t.Context(), long, "t", nil, 0, delaytask.WithKey("taken"))
		servertest.OK(t, err)
		var all sync.WaitGroup
		all.Go(func() { // waits for the transaction
			_, err := s.SaveDelayTask(t.Context(), "t", nil, 0, delaytask.WithKey("taken"))
			if err != nil && !errors.Is(err, delaytask.ErrDuplicate) {
				t.Errorf("the key that is taken: %v", err)
			}
		})
		const savers, each = 8, 30
		for i := range savers {
			all.Go(func() {
				for n := range each {
					var err error
					switch delay := time.Duration(n) * 20 * time.Millisecond; n % 3 {
					case 0:
						_, err = s.SaveDelayTask(t.Context(), "t", nil, delay)
					case 1:
						_, err = s.SaveDelayTask(t.Context(), "t", nil, delay, delaytask.WithKey(fmt.Sprint(i, n)))
					case 2:
						tx, beginErr := small.BeginTx(t.Context(), nil)
						if beginErr != nil {
							err = beginErr
							break
						}
						_, err = s.SaveDelayTaskTx(t.Context(), tx, "t", nil, delay)
						err = errors.Join(err, tx.Commit())
					}
					if err != nil {
						t.Errorf("save: %v", err)
					}
				}
			})
		}
		runs := map[int64]int{}
		for range savers * each {
			runs[servertest.Receive(t, ran, "a task runs beside the transaction")]++
		}
		servertest.Eventually(t, "lease is renewed", func() bool { return number(t, others, lease, renewed) == 1 })
		commit(t, long)
		all.Wait()
		close(letGo)
		reaches(t, s, renewed, delaytask.Completed)
		for runs[locked] == 0 || runs[taken] == 0 {
			runs[servertest.Receive(t, ran, "tasks of the transaction run")]++
		}
		for id, n := range runs {
			if task := reaches(t, s, id, delaytask.Completed); n != 1 || task.Attempt != 1 {
				t.Errorf("task %d: %d runs, attempt %d", id, n, task.Attempt)
			}
		}
	})
}

// A web process that only saves keeps its small pool. Processors that the pool is too small for are refused as they are
// registered, and nothing else is.
func TestSavesNeedSixConnectionsAndProcessorsMore(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		small := pool(t, d)
		small.SetMaxOpenConns(6)
		s, err := scheduler.New(t.Context(), small, config(t))
		servertest.OK(t, err)
		defer servertest.Stop(t, s)
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				_, err := s.SaveDelayTask(t.Context(), "t", nil, time.Hour, delaytask.WithKey(fmt.Sprint(i%2, i)))
				if err != nil {
					t.Errorf("save: %v", err)
				}
			})
		}
		all.Wait()
		never := processor.Func(func(context.Context, *delaytask.Task) error { return nil })
		err = s.Register("t", never)
		if err == nil || !strings.Contains(err.Error(), "need 22") || !strings.Contains(err.Error(), "to 4 or less") {
			t.Errorf("a processor on 6 connections: %v", err)
		}
		servertest.OK(t, s.Start(t.Context()))
		save(t, s, "t", time.Hour)
		small.SetMaxOpenConns(22)
		servertest.OK(t, s.Register("t", never))
	})
}
