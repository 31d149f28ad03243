package scanner

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"
)

// Pass is one piece of work that is repeated.
type Pass struct {
	Name  string
	Every time.Duration
	// Takes reports whether a turn is this process's. Turns of others are left out; a kick counts for all. nil: each
	// turn is.
	Takes func() bool
	// Run does the work once. Its context ends when the runner stops. An error is logged; the next turn comes anyway.
	Run func(ctx context.Context) error
}

// Runner repeats passes. One pass never runs twice at a time; different passes do not wait for each other.
type Runner struct {
	log    *slog.Logger
	cron   *cron.Cron
	passes []*job
	wg     sync.WaitGroup // jobs and the watchdog

	mu      sync.Mutex
	ctx     context.Context // nil before Start
	cancel  context.CancelFunc
	stopped bool
}

// NewRunner returns a runner of the passes; nothing runs before Start.
func NewRunner(log *slog.Logger, passes ...Pass) *Runner {
	r := &Runner{log: log, cron: cron.New(cron.WithLocation(time.UTC), cron.WithLogger(cron.DiscardLogger))}
	for _, p := range passes {
		r.passes = append(r.passes, newJob(p))
	}
	return r
}

// Start begins to run the passes, each first after a random part of its interval; use Kick to run one at once. The
// passes' context carries the values of ctx and ends with it. Start does not block and does nothing when called again
// or after Stop.
func (r *Runner) Start(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx != nil || r.stopped {
		return
	}
	ctx, r.cancel = context.WithCancel(ctx)
	r.ctx = ctx
	for _, j := range r.passes {
		r.schedule(j)
		r.wg.Go(func() { r.watch(ctx, j) })
	}
	r.cron.Start()
}

// Kick runs the named pass now, or once more as soon as the run in progress ends. Kicks that meet a waiting one are one
// with it. It does not block, and does nothing before Start and after Stop.
func (r *Runner) Kick(name string) {
	for _, j := range r.passes {
		if j.pass.Name == name {
			r.spawn(func(ctx context.Context) { j.kick(ctx, r.log) })
		}
	}
}

// Stop ends the passes' context and waits until all have returned. It may be called more than once and before Start. It
// returns the context's error when that ends first.
func (r *Runner) Stop(ctx context.Context) error {
	r.mu.Lock()
	if r.ctx != nil && !r.stopped {
		r.cancel()
		r.cron.Stop()
	}
	r.stopped = true
	r.mu.Unlock()

	done := make(chan struct{})
	go func() {
		r.wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// spawn runs f unless the runner is not running; Stop waits for it.
func (r *Runner) spawn(f func(ctx context.Context)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ctx == nil || r.stopped {
		return
	}
	ctx := r.ctx
	r.wg.Go(func() { f(ctx) })
}

func (r *Runner) schedule(j *job) {
	phase := rand.N(j.pass.Every)
	j.entry = r.cron.Schedule(interval{j.pass.Every, phase}, cron.FuncJob(func() {
		r.spawn(func(ctx context.Context) { j.tick(ctx, r.log) })
	}))
}

// watch notices when the pass's turns stop coming. Cron goes by the wall clock: set back by an hour, it would wait for
// an hour.
func (r *Runner) watch(ctx context.Context, j *job) {
	ticker := time.NewTicker(2 * j.pass.Every)
	defer ticker.Stop()
	turns := j.turns.Load()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if now := j.turns.Load(); now != turns {
			turns = now
			continue
		}
		r.log.Warn("a pass missed its turns; was the machine's clock set back? It is started again",
			"pass", j.pass.Name)
		r.reschedule(j)
		r.Kick(j.pass.Name)
	}
}

func (r *Runner) reschedule(j *job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return
	}
	r.cron.Remove(j.entry)
	r.schedule(j)
}

// interval is a cron schedule of any interval: cron's "@every" takes whole seconds and has no phase.
type interval struct{ every, phase time.Duration }

func (s interval) Next(t time.Time) time.Time {
	return t.Add(-s.phase).Truncate(s.every).Add(s.every + s.phase)
}

// job is a pass with what keeps its runs from overlapping.
type job struct {
	pass    Pass
	entry   cron.EntryID
	busy    chan struct{} // holds one token while the pass runs
	waiting atomic.Bool   // a kick waits for its turn
	turns   atomic.Int64  // how often cron called, whether or not the pass could run
}

func newJob(p Pass) *job { return &job{pass: p, busy: make(chan struct{}, 1)} }

// tick runs the pass unless it is still running: its next turn comes soon.
func (j *job) tick(ctx context.Context, log *slog.Logger) {
	j.turns.Add(1)
	if takes := j.pass.Takes; takes != nil && !takes() {
		return
	}
	select {
	case j.busy <- struct{}{}:
		j.run(ctx, log)
	default:
	}
}

// kick waits for a run in progress, which may have read the table before the event of the kick.
func (j *job) kick(ctx context.Context, log *slog.Logger) {
	if !j.waiting.CompareAndSwap(false, true) {
		return
	}
	select {
	case j.busy <- struct{}{}:
		j.waiting.Store(false)
		j.run(ctx, log)
	case <-ctx.Done():
		j.waiting.Store(false)
	}
}

// run does the pass once and gives the token back. A panic ends neither the process nor later turns of the pass.
func (j *job) run(ctx context.Context, log *slog.Logger) {
	defer func() {
		if v := recover(); v != nil {
			log.Error("a pass panicked", "pass", j.pass.Name, "panic", v, "stack", string(debug.Stack()))
		}
		<-j.busy
	}()
	if err := j.pass.Run(ctx); err != nil && ctx.Err() == nil {
		log.Warn("a pass failed; it runs again at its next turn", "pass", j.pass.Name, "err", err)
	}
}
