package delaytask

import (
	"context"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/seam"
)

func init() {
	seam.NewScheduler = func(cfg any, st engine.Store, build func(engine.Config) (*engine.Engine, error)) (any, error) {
		return withEngine(cfg.(Config), st, build)
	}
}

// withEngine returns a scheduler on a store and an engine that are somebody else's.
func withEngine(cfg Config, st engine.Store, build func(engine.Config) (*engine.Engine, error)) (*Scheduler, error) {
	cfg, err := prepare(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	built := cfg.engineConfig(st)
	e, err := build(built)
	if err != nil {
		return nil, err
	}
	return newScheduler(e, built, cfg.BodyLimit, func(context.Context) error { return nil }), nil
}
