package reqbody

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bridge"
	"github.com/delaytask/delaytask/internal/server/access"
)

const releaseWait = 5 * time.Second

// HandOut asks once more, by allow, whether the caller may have the tasks: it may have waited for them for a while.
// Otherwise it gives them back and returns what allow says, or why nobody may call any more.
func HandOut(
	ctx context.Context, log *slog.Logger, from *delaytask.Scheduler, popped []*delaytask.Popped,
	allow func(context.Context, access.Verb, string) error,
) error {
	if len(popped) == 0 {
		return nil
	}
	ctx, err := access.Again(ctx)
	for i := 0; i < len(popped) && err == nil; i++ {
		err = allow(ctx, access.Work, popped[i].Tag)
	}
	if err != nil {
		GiveBack(log, from, popped)
	}
	return err
}

// GiveBack releases tasks that their caller does not get; otherwise they would wait for the end of their leases. They
// have not started then.
func GiveBack(log *slog.Logger, to *delaytask.Scheduler, popped []*delaytask.Popped) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWait)
	defer cancel()
	var releases sync.WaitGroup // those that are made together share statements
	for _, p := range popped {
		releases.Go(func() {
			if err := bridge.GiveBack(ctx, to, p.Token()); err != nil {
				log.Warn("a task that its caller does not get could not be released; its lease returns it", "task", p.ID, "err", err)
			}
		})
	}
	releases.Wait()
}
