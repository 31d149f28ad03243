// Schedule runs tasks again and again, on a database of its own:
//
//	go run ./examples/schedule
//
// Kill it in any way and start it again: it goes on with what is stored.
package main

import (
	"cmp"
	"context"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

type report struct{ Shop string }

// BuildReport ties the tag to the type of its body.
var BuildReport = processor.NewKind[report]("report.build")

func run(ctx context.Context) error {
	dsn := cmp.Or(os.Getenv("DELAYTASK_DSN"), "sqlite:delaytask.db")
	// A program that "go build" makes in a Git checkout knows its revision; "go run" stores none.
	tasks, err := scheduler.Open(ctx, dsn, scheduler.Config{Migrate: true})
	if err != nil {
		return err
	}
	err = BuildReport.Process(tasks, func(_ context.Context, task *delaytask.Task, r report) error {
		_, err := os.Stdout.WriteString("report of shop " + r.Shop + task.Schedule.Tick.Format(" at 15:04:05\n"))
		return err
	})
	if err != nil {
		return err
	}
	// Declared in code: the schedule is there as long as programs that declare it live.
	if err := BuildReport.Every(tasks, "report.north", delaytask.Every(2*time.Second), report{"north"}); err != nil {
		return err
	}
	if err := tasks.Start(ctx); err != nil {
		return err
	}
	// Saved at runtime: it is there until it is deleted. This one ends by itself after its run.
	soon := delaytask.At(time.Now().Add(3 * time.Second))
	if _, err := tasks.SaveSchedule(ctx, "report.south", soon, BuildReport.Tag(), report{"south"}); err != nil {
		return err
	}
	<-ctx.Done() // Ctrl-C; what runs is finished first
	return tasks.Stop(context.WithoutCancel(ctx))
}
