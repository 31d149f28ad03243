package scheduler

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bridge"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/eyes/overview"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
)

func init() {
	bridge.NewScheduler = func(
		cfg any, st store.Store, build func(engine.Config) (*engine.Engine, error),
	) (any, error) {
		return withEngine(cfg.(Config), st, build)
	}
	bridge.Store = func(scheduler any) store.Store { return scheduler.(*Scheduler).store }
	bridge.Bulks = func(scheduler any) *bulk.Runs { return &scheduler.(*Scheduler).bulks }
	bridge.Nodes = func(ctx context.Context, scheduler any) ([]report.Node, []string, error) {
		return scheduler.(*Scheduler).nodes(ctx)
	}
	bridge.Registered = func(scheduler any, tag string) (processor.Registration, bool) {
		return scheduler.(*Scheduler).registry.Lookup(tag)
	}
	bridge.ClockWidth = func(scheduler any) (time.Duration, bool) { return scheduler.(*Scheduler).engine.ClockWidth() }
	bridge.Warning = func(scheduler any) string { return scheduler.(*Scheduler).engine.Warning() }
	bridge.Overview = func(
		ctx context.Context, scheduler any, f report.OverviewFilter,
	) (report.Overview, []overview.Advice, error) {
		found, err := scheduler.(*Scheduler).readOverview(ctx)
		if err != nil {
			return report.Overview{}, nil, err
		}
		o, advice := found.Advised(f)
		return o, advice, nil
	}
	bridge.Explain = func(
		ctx context.Context, scheduler any, ref delaytask.Ref,
	) (report.Explanation, sentence.Text, error) {
		return scheduler.(*Scheduler).explainRef(ctx, ref)
	}
	bridge.ExplainSchedule = func(
		ctx context.Context, scheduler any, name string, tick time.Time,
	) (report.ScheduleExplanation, sentence.Text, error) {
		return scheduler.(*Scheduler).explainSchedule(ctx, name, tick)
	}
	bridge.Save = func(ctx context.Context, scheduler, item any) (id int64, task any, rescheduled bool, err error) {
		i := item.(delaytask.Item)
		id, saved, err := scheduler.(*Scheduler).save(ctx, i.Tag, i.Body, i.Delay, i.Options)
		if saved.Row != nil {
			task = taskOf(saved.Row)
		}
		return id, task, saved.Rescheduled, err
	}
	bridge.CheckSave = func(scheduler, item any) error {
		i := item.(delaytask.Item)
		_, err := scheduler.(*Scheduler).newSave(nil, i.Tag, i.Body, i.Delay, i.Options)
		return err
	}
	bridge.CheckFilter = func(filter any) error {
		f := filter.(delaytask.Filter)
		_, err := queryOf(&f, 0)
		return err
	}
	bridge.Complete = func(ctx context.Context, scheduler any, token delaytask.Token) error {
		s := scheduler.(*Scheduler)
		return s.byToken(ctx, "complete", token, s.engine.Complete)
	}
	bridge.Unclaim = func(ctx context.Context, scheduler any, token delaytask.Token) error {
		s := scheduler.(*Scheduler)
		return s.byToken(ctx, "give back", token, s.engine.Unclaim)
	}
	bridge.SaveOption = func(key string) any { return withGlobalKey(key) }
}

// withGlobalKey names the task in the namespace that all tags share. The key obeys the rules of any other.
func withGlobalKey(key string) delaytask.Option {
	return func(s *delaytask.Save) error {
		own, ok := strings.CutPrefix(key, row.GlobalKey)
		if !ok {
			return fmt.Errorf("%w: %.140q does not begin with %q", delaytask.ErrInvalidKey, key, row.GlobalKey)
		}
		if err := delaytask.WithKey(strings.Repeat("_", len(row.GlobalKey)) + own)(s); err != nil {
			return err
		}
		s.Key = key
		return nil
	}
}

// withEngine returns a scheduler on a store and an engine that the caller made.
func withEngine(cfg Config, st store.Store, build func(engine.Config) (*engine.Engine, error)) (*Scheduler, error) {
	cfg, err := prepare(context.Background(), cfg)
	if err != nil {
		return nil, err
	}
	built := cfg.engineConfig(st)
	e, err := build(built)
	if err != nil {
		return nil, err
	}
	return newScheduler(e, built, &cfg, func(context.Context) error { return nil }), nil
}
