package delaytasktest

import (
	"context"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// Scheduler is a scheduler.Scheduler whose time the test controls. Its Start runs nothing: tasks run in RunDue and
// Advance, which start it.
type Scheduler struct {
	*scheduler.Scheduler
	t       testing.TB
	clock   *clock
	manual  *engine.Manual
	running sync.Mutex // held while tasks run
}

// Option is a setting of [New].
type Option func(*settings)

type settings struct {
	start  time.Time
	config scheduler.Config
}

// StartAt sets the clock's first time. Default: the time of the call of New.
func StartAt(t time.Time) Option { return func(s *settings) { s.start = t } }

// WithConfig sets the config of the scheduler. Its defaults apply, except that the backoff has no jitter and the logger
// discards.
func WithConfig(cfg scheduler.Config) Option { return func(s *settings) { s.config = cfg } }

// New returns a scheduler without tasks, which is stopped when the test ends. It fails the test when the config is not
// valid.
func New(t testing.TB, opts ...Option) *Scheduler {
	t.Helper()
	set := settings{start: time.Now()}
	for _, opt := range opts {
		opt(&set)
	}
	if set.config.Backoff == nil {
		set.config.Backoff = processor.Exponential(time.Second, time.Hour, 0)
	}
	if set.config.Revision.IsZero() { // a test is built without the time of a commit
		set.config.Revision = set.start
	}
	if set.config.Logger == nil {
		set.config.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Scheduler{t: t, clock: &clock{at: set.start.UTC().Truncate(time.Microsecond)}}
	st := store{memstore.New(memstore.WithClock(s.clock.now))}
	core.BuildOn(&set.config, st, s.build)
	var err error
	if s.Scheduler, err = scheduler.New(context.Background(), nil, set.config); err != nil {
		t.Fatalf("delaytasktest: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Stop(context.Background()); err != nil {
			t.Errorf("delaytasktest: stop: %v", err)
		}
	})
	return s
}

func (s *Scheduler) build(cfg engine.Config) (_ *engine.Engine, err error) {
	cfg.WithTimeout = s.clock.withTimeout
	s.manual, err = engine.NewManual(context.Background(), cfg, s.clock.now)
	if err != nil {
		return nil, err
	}
	return s.manual.Engine, nil
}

// Run is an attempt that was run.
type Run struct {
	ID      int64
	Tag     string
	Attempt int
	At      time.Time        // when it started
	Err     error            // what the processor returned
	Status  delaytask.Status // of the task after it
}

// maxRuns ends a RunDue that would never end, for instance if a processor saves its own task again without a delay.
const maxRuns = 10_000

// RunDue moves the clock to the moment at and runs everything that falls due until then, each task at its own due time,
// in the calling goroutine: by due time, tasks that are ready together by priority. Tasks that fall due by that
// (retries, snoozes, tasks that processors save) run too, and so do the ticks of schedules. A moment in the past leaves
// the clock where it is and runs what is due there. A processor that lets the clock pass that moment moves the moment.
//
// It returns the attempts in the order of their runs. It fails the test when it is called by a processor, or when the
// tasks never end.
func (s *Scheduler) RunDue(at time.Time) []Run {
	s.t.Helper()
	if !s.running.TryLock() {
		s.t.Fatalf("delaytasktest: RunDue was called while tasks run")
	}
	defer s.running.Unlock()
	at = at.Truncate(time.Microsecond)
	var runs []Run
	if err := s.Start(context.Background()); err != nil {
		s.t.Fatalf("delaytasktest: start: %v", err)
	}
	s.moveTo(s.clock.now())
	for {
		if now := s.clock.now(); at.Before(now) {
			at = now
		}
		due, found, err := s.manual.Next(context.Background(), row.At(at))
		if err != nil {
			s.t.Fatalf("delaytasktest: look for due tasks: %v", err)
		}
		look, err := s.manual.NextLook(context.Background())
		if err != nil {
			s.t.Fatalf("delaytasktest: look for schedules and leases: %v", err)
		}
		if !look.IsZero() && look <= row.At(at) && (!found || look <= due.Due) {
			s.moveTo(look.Std())
			continue
		}
		if !found {
			s.moveTo(at)
			return runs
		}
		if len(runs) == maxRuns {
			s.t.Fatalf("delaytasktest: %d attempts and no end; "+
				"does a processor of tag %s save its own task without a delay?",
				maxRuns, due.Tag)
		}
		s.moveTo(due.Due.Std())
		runs = append(runs, s.run(due))
		s.moveTo(s.clock.now()) // a schedule may plant its next run
	}
}

// Outage moves the clock on by d and runs nothing, as if no process lived. The next RunDue or Advance meets what fell
// due meanwhile. Called while a processor runs, d is what the processor takes: at its timeout its context ends.
func (s *Scheduler) Outage(d time.Duration) { s.clock.forward(s.clock.now().Add(d)) }

// Advance moves the clock on by d and runs everything that falls due until then, as RunDue does. Advance(0) runs what
// is due now.
func (s *Scheduler) Advance(d time.Duration) []Run {
	s.t.Helper()
	return s.RunDue(s.clock.now().Add(d))
}

func (s *Scheduler) run(due row.Due) Run {
	s.t.Helper()
	started := s.clock.now()
	result, ran, err := s.manual.Run(context.Background(), due)
	if err != nil || !ran {
		s.t.Fatalf("delaytasktest: task %d could not be claimed: %v", due.ID, err)
	}
	task, err := s.Get(context.Background(), delaytask.ID(due.ID))
	if err != nil {
		s.t.Fatalf("delaytasktest: task %d could not be read: %v", due.ID, err)
	}
	return Run{ID: task.ID, Tag: task.Tag, Attempt: max(task.Attempt, 1), At: started, Err: result, Status: task.Status}
}

// moveTo moves the clock and applies what depends on time.
func (s *Scheduler) moveTo(t time.Time) {
	s.t.Helper()
	s.clock.forward(t)
	if err := s.manual.Tick(context.Background()); err != nil {
		s.t.Fatalf("delaytasktest: move the clock: %v", err)
	}
}

// store is the database in memory. It ignores transactions: they belong to another database, or to none.
type store struct{ *memstore.Store }

func (s store) Insert(ctx context.Context, _ delaytask.Tx, rows []row.Row) error {
	return s.Store.Insert(ctx, nil, rows)
}

func (s store) Get(ctx context.Context, _ delaytask.Tx, ids []int64) ([]row.Row, []row.Broken, error) {
	return s.Store.Get(ctx, nil, ids)
}

func (s store) FindActive(ctx context.Context, _ delaytask.Tx, keys []row.TagKey) ([]row.Row, error) {
	return s.Store.FindActive(ctx, nil, keys)
}

func (s store) LockActive(
	ctx context.Context, _ delaytask.Tx, key row.TagKey,
) ([]row.Row, []row.Broken, error) {
	return s.Store.LockActive(ctx, nil, key)
}

func (s store) Update(ctx context.Context, _ delaytask.Tx, changes []row.Change) (int, error) {
	return s.Store.Update(ctx, nil, changes)
}
