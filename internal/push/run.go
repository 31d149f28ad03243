package push

import (
	"context"
	"math/rand/v2"
	"time"
)

const purgeEvery = 10 * time.Minute

// Run keeps this process in step with the registered workers until ctx ends. What it has registered with the scheduler stays,
// for what is still to be run; run it once.
func (r *Registry) Run(ctx context.Context) {
	s := &serving{Registry: r, seen: map[string]time.Time{}, refused: map[string]bool{}, closed: map[int64]bool{}}
	every := time.NewTicker(r.Every)
	defer every.Stop()
	purge := time.NewTimer(rand.N(purgeEvery)) // so that many processes do not do it together
	defer purge.Stop()
	for ctx.Err() == nil {
		s.read(ctx)
		select {
		case <-ctx.Done():
		case <-r.changed:
		case <-every.C:
		case <-purge.C:
			r.purge(ctx)
			purge.Reset(purgeEvery)
		}
	}
}

func (r *Registry) purge(ctx context.Context) {
	if _, err := r.Store.PurgeWorkers(ctx); err != nil && ctx.Err() == nil {
		r.Log.Warn("expired workers could not be deleted", "err", err)
	}
}
