package service

import (
	"context"
	"time"
)

const purgeEvery = time.Minute

// purge forgets idempotency keys that are a day old.
func (p *parts) purge(ctx context.Context) {
	ticker := time.NewTicker(purgeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		const most = 1000
		for ctx.Err() == nil {
			n, err := p.store.PurgeRequests(ctx, most)
			if err != nil && ctx.Err() == nil {
				p.log.Warn("old idempotency keys could not be deleted; they are tried again", "err", err)
			}
			if err != nil || n < most {
				break
			}
		}
	}
}
