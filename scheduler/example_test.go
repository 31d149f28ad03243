package scheduler_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

// A task is saved and runs when its delay is over. The database is a file; no server is needed.
func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "delaytask")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	scheduler, err := scheduler.Open(ctx, "sqlite:"+filepath.Join(dir, "tasks.db"), scheduler.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer scheduler.Stop(ctx)

	type order struct {
		Number int `json:"number"`
	}
	closeOrder := processor.NewKind[order]("order.close", delaytask.WithMaxAttempts(5))
	done := make(chan struct{})
	err = closeOrder.Process(scheduler, func(ctx context.Context, task *delaytask.Task, o order) error {
		fmt.Printf("closing order %d, early: %v\n", o.Number, time.Now().Before(task.Expected))
		close(done)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := scheduler.Start(ctx); err != nil {
		log.Fatal(err)
	}

	if _, err := closeOrder.Save(ctx, scheduler, order{Number: 7}, 200*time.Millisecond); err != nil {
		log.Fatal(err)
	}
	<-done
	// Output: closing order 7, early: false
}

// A task that is saved in a transaction exists if and only if the transaction commits. A key keeps it from being saved
// twice.
func ExampleScheduler_SaveDelayTaskTx() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "delaytask")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	// The application's own pool; MySQL works alike.
	db, err := sql.Open("sqlite", filepath.Join(dir, "shop.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)

	scheduler, err := scheduler.New(ctx, db, scheduler.Config{Migrate: true})
	if err != nil {
		log.Fatal(err)
	}
	defer scheduler.Stop(ctx)
	if _, err := db.ExecContext(ctx, "CREATE TABLE orders (number INTEGER)"); err != nil {
		log.Fatal(err)
	}

	placeOrder := func(number int, commit bool) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders VALUES (?)", number); err != nil {
			return err
		}
		key := delaytask.WithKey(fmt.Sprint("order ", number))
		if _, err := scheduler.SaveDelayTaskTx(ctx, tx, "order.close", number, 30*time.Minute, key); err != nil {
			return err
		}
		if !commit {
			return errors.New("the customer changed his mind")
		}
		return tx.Commit()
	}
	fmt.Println(placeOrder(7, false))
	fmt.Println(placeOrder(7, true))
	fmt.Println(errors.Is(placeOrder(7, true), delaytask.ErrDuplicate))

	page, err := scheduler.List(ctx, delaytask.Filter{Tag: "order.close"})
	if err != nil {
		log.Fatal(err)
	}
	for _, task := range page.Tasks {
		fmt.Println(task.Key, task.Status, task.Delay)
	}
	// Output:
	// the customer changed his mind
	// <nil>
	// true
	// order 7 pending 30m0s
}

// What a processor returns decides what becomes of its task.
func Example_outcomes() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "delaytask")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	failed := make(chan string, 1)
	scheduler, err := scheduler.Open(ctx, "sqlite:"+filepath.Join(dir, "tasks.db"), scheduler.Config{
		Backoff: processor.Constant(20 * time.Millisecond),
		OnFailed: func(_ context.Context, task *delaytask.Task, err error) {
			failed <- fmt.Sprintf("%s failed for good in attempt %d: %v", task.Tag, task.Attempt, err)
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer scheduler.Stop(ctx)

	asked := false
	charge := processor.Func(func(_ context.Context, task *delaytask.Task) error {
		if !asked {
			asked = true
			fmt.Println("attempt", task.Attempt, "has nothing to do yet")
			return processor.Snooze(20 * time.Millisecond) // spends no attempt
		}
		if task.Attempt == 1 {
			fmt.Println("attempt 1 meets an error that may go away")
			return errors.New("the bank does not answer") // again after the backoff
		}
		fmt.Println("attempt", task.Attempt, "meets one that will not")
		return processor.Permanent(errors.New("no such account")) // fails at once
	})
	if err := scheduler.Register("charge", charge); err != nil {
		log.Fatal(err)
	}
	if err := scheduler.Start(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := scheduler.SaveDelayTask(ctx, "charge", nil, 0); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-failed)
	// Output:
	// attempt 1 has nothing to do yet
	// attempt 1 meets an error that may go away
	// attempt 2 meets one that will not
	// charge failed for good in attempt 2: no such account
}
