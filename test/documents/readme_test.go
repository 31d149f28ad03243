package documents

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

type order struct{ Number int }

func TestTheFirstLinesSaveAndRun(t *testing.T) {
	t.Parallel()
	ctx, dsn, closed := t.Context(), embedded(t), make(chan order)
	check := func(err error) { servertest.OK(t, err) }
	closeUnpaid := func(_ context.Context, o order) error {
		closed <- o
		return nil
	}

	CloseOrder := processor.NewKind[order]("order.close") // a tag, and the type of its tasks' bodies
	tasks, err := scheduler.Open(ctx, dsn, scheduler.Config{Migrate: true})
	check(err)
	check(CloseOrder.Process(tasks, func(ctx context.Context, task *delaytask.Task, o order) error {
		return closeUnpaid(ctx, o) // after an error it is tried again
	}))
	check(tasks.Start(ctx))
	_, err = CloseOrder.Save(ctx, tasks, order{Number: 42}, 30*time.Minute) // SaveTx: in your transaction
	check(err)

	page, err := tasks.List(ctx, delaytask.Filter{Tag: "order.close"})
	check(err)
	_, err = tasks.Reschedule(ctx, delaytask.ID(page.Tasks[0].ID), 0)
	check(err)
	if o := <-closed; o.Number != 42 {
		t.Errorf("it closes %+v", o)
	}
	check(tasks.Stop(context.WithoutCancel(ctx)))
}

func embedded(t *testing.T) (dsn string) { return "sqlite:" + filepath.Join(t.TempDir(), "tasks.db") }
