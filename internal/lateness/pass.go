package lateness

import (
	"context"
	"time"
)

// Pass waits for d. It returns the context's cause when ctx ends first.
func Pass(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
