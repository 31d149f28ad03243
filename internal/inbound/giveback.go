package inbound

import (
	"context"
	"log/slog"
	"time"

	"github.com/delaytask/delaytask"
)

const releaseWait = 5 * time.Second

// GiveBack releases tasks whose caller has hung up; otherwise they would wait for the end of their leases.
func GiveBack(log *slog.Logger, popped []*delaytask.Popped) {
	ctx, cancel := context.WithTimeout(context.Background(), releaseWait)
	defer cancel()
	for _, p := range popped {
		if err := p.Release(ctx); err != nil {
			log.Warn("a task whose caller is gone could not be released; its lease returns it", "task", p.ID, "err", err)
		}
	}
}
