package engine

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/processor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is one store and the engines on it, inside a bubble.
type world struct {
	*testing.T
	store *memstore.Store
	runs  *journal
	lossy map[*Engine]bool // a stop of these may fail
}

// journal collects what processors saw.
type journal struct {
	mu      sync.Mutex
	started map[int64][]started
	offset  time.Duration // of the database's clock
	hangs   bool          // an attempt may go on when its lease is lost, and the next one begin beside it
	wrong   []string
}

type started struct {
	at   time.Time
	task delaytask.Task
}

// note wraps a processor. Whatever the test is about, none may start early, and no task twice at a time in one process.
func (j *journal) note(f processor.Func) processor.Func {
	running := map[int64]bool{}
	return func(ctx context.Context, task *delaytask.Task) error {
		now := time.Now()
		j.mu.Lock()
		if there := now.Add(j.offset); there.Before(task.Due) || there.Before(task.Expected) {
			early := max(task.Due.Sub(there), task.Expected.Sub(there))
			j.wrong = append(j.wrong, fmt.Sprintf("task %d started %v early", task.ID, early))
		}
		if running[task.ID] && !j.hangs {
			j.wrong = append(j.wrong, fmt.Sprintf("task %d runs twice in one process", task.ID))
		}
		running[task.ID] = true
		j.started[task.ID] = append(j.started[task.ID], started{now, *task})
		j.mu.Unlock()
		defer func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			delete(running, task.ID)
		}()
		return f(ctx, task)
	}
}

func (j *journal) of(id int64) []started {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.started[id]
}

// bubbleTime is when bubbles begin: their own time begins before ids do.
var bubbleTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// inBubble runs f with fake time.
func inBubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(bubbleTime))
		w := &world{
			T:     t,
			store: memstore.New(),
			runs:  &journal{started: map[int64][]started{}},
			lossy: map[*Engine]bool{},
		}
		w.Cleanup(func() {
			w.runs.mu.Lock()
			defer w.runs.mu.Unlock()
			for _, wrong := range w.runs.wrong {
				w.Error(wrong)
			}
		})
		f(w)
	})
}

// inBubbles runs f with fake time for each case.
func inBubbles[C any](t *testing.T, cases map[string]C, f func(w *world, c C)) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) { inBubble(t, func(w *world) { f(w, c) }) })
	}
}

// inBubblesOf is inBubbles for cases that are their own names.
func inBubblesOf[C any](t *testing.T, cases []C, f func(w *world, c C)) {
	t.Helper()
	for _, c := range cases {
		t.Run(fmt.Sprint(c), func(t *testing.T) { inBubble(t, func(w *world) { f(w, c) }) })
	}
}

// serving is which processors an engine has.
type serving = map[string]processor.Func

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// engine returns a started engine on the store, with the processors; it is stopped at the end of the test.
func (w *world) engine(store store.Store, tags serving, change ...func(*Config)) *Engine {
	w.Helper()
	e := w.idle(store, tags, change...)
	w.must(e.Start(w.Context()))
	return e
}

// idle is an engine that was not started.
func (w *world) idle(store store.Store, tags serving, change ...func(*Config)) *Engine {
	w.Helper()
	cfg := testConfig(store)
	for _, c := range change {
		c(&cfg)
	}
	for tag, f := range tags {
		w.must(cfg.Registry.Register(tag, w.runs.note(f)))
	}
	e, err := New(w.Context(), cfg)
	w.must(err)
	w.Cleanup(func() {
		if err := e.Stop(context.WithoutCancel(w.Context())); err != nil && !w.lossy[e] {
			w.Error(err)
		}
	})
	return e
}

// crash ends an engine as a killed process ends: nothing more of it reaches the store, and its node is left in the
// registry.
func (w *world) crash(e *Engine) {
	w.Helper()
	w.lossy[e] = true
	e.Abort()
	if err := e.find.Stop(w.Context()); err != nil {
		w.Error(err)
	}
}

func testConfig(store store.Store) Config {
	log := slog.DiscardHandler
	if testing.Verbose() {
		log = slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})
	}
	return Config{
		Store: store, Registry: &processor.Registry{}, Metrics: newMeasured(),
		Logger: slog.New(log), CallTimeout: 10 * time.Second,
		Concurrency: 64, TTR: 15 * time.Second, Timeout: 5 * time.Minute, MaxAttempts: 20,
		Backoff:    processor.Constant(time.Second),
		ErrorLimit: 8 << 10, Quarantine: 5, LookAhead: time.Second, Window: 2 * time.Second, ScanEvery: 5 * time.Second,
		Horizon: time.Hour, HeapCap: 250_000,
		Heartbeat: time.Second, StopGrace: 30 * time.Second,
	}
}

// task is a checked save.
func (w *world) task(tag string, delay time.Duration, opts ...delaytask.Option) delaytask.Save {
	w.Helper()
	task, err := request.NewSave(tag, "body", delay, request.Limits{}, opts...)
	w.must(err)
	return task
}

func (w *world) save(e *Engine, tag string, delay time.Duration, opts ...delaytask.Option) int64 {
	w.Helper()
	id, _, err := e.Save(w.Context(), w.task(tag, delay, opts...))
	w.must(err)
	return id
}

// many saves n tasks.
func (w *world) many(e *Engine, n int, tag string, delay time.Duration, opts ...delaytask.Option) (ids []int64) {
	w.Helper()
	for range n {
		ids = append(ids, w.save(e, tag, delay, opts...))
	}
	return ids
}

// plain is what an INSERT by hand leaves: a small id of the table's own, and perhaps no due time.
func (w *world) plain(id int64, tag string, due row.Time) int64 {
	w.store.Plant(
		row.Row{ID: id, Tag: tag, Body: []byte("{}"), Due: due, Expected: due, TTR: 15 * time.Second, MaxAttempts: 20},
	)
	return id
}

// backlog plants n rows, with ids from 1000 on, due one microsecond after the other.
func (w *world) backlog(n int, tag string, due row.Time) (ids []int64) {
	for i := range int64(n) {
		ids = append(ids, w.plain(1000+i, tag, due+row.Time(i)))
	}
	return ids
}

// setClock moves the database's clock away from this machine's.
func (w *world) setClock(offset time.Duration) {
	w.store.SetOffset(offset)
	w.runs.mu.Lock()
	defer w.runs.mu.Unlock()
	w.runs.offset = offset
}

// ran returns the starts of a task, which must be n.
func (w *world) ran(id int64, n int) []started {
	w.Helper()
	runs := w.runs.of(id)
	if len(runs) != n {
		w.Fatalf("task %d started %d times, want %d: %+v", id, len(runs), n, w.row(id))
	}
	return runs
}

// once returns how late the only start of a task was, by its promise.
func (w *world) once(id int64) time.Duration {
	w.Helper()
	runs := w.ran(id, 1)
	promised := runs[0].task.Expected
	if promised.IsZero() { // a plain INSERT without a time
		promised = runs[0].task.Due
	}
	return runs[0].at.Sub(promised)
}

// completed checks that a task ran once, at most late after it was due, and was completed.
func (w *world) completed(id int64, late time.Duration) {
	w.Helper()
	if got := w.once(id); got > late {
		w.Errorf("task %d started %v late, want at most %v", id, got, late)
	}
	w.standing(row.Completed, 1, 0, id)
}

func (w *world) allCompleted(ids []int64, late time.Duration) {
	w.Helper()
	for _, id := range ids {
		w.completed(id, late)
	}
}

// standing checks the status of rows, and after how many attempts and crashes they have it.
func (w *world) standing(status row.Status, attempt, crashes int, ids ...int64) {
	w.Helper()
	for _, id := range ids {
		if r := w.row(id); r.Status != status || r.Attempt != attempt || r.CrashCount != crashes {
			w.Errorf("task %d is %v after attempt %d and %d crashes, want %v, %d and %d: %s",
				id, r.Status, r.Attempt, r.CrashCount, status, attempt, crashes, r.Errors)
		}
	}
}

// done counts the tasks of a tag that are completed.
func (w *world) done(tag string) (n int) {
	for _, r := range w.of(tag) {
		if r.Status == row.Completed {
			n++
		}
	}
	return n
}

// of returns the rows of a tag, in the order of their ids.
func (w *world) of(tag string) []row.Row {
	return slices.DeleteFunc(w.store.All(), func(r row.Row) bool { return r.Tag != tag })
}

// executing counts the tasks that are claimed.
func (w *world) executing(ids []int64) (n int) {
	synctest.Wait()
	for _, id := range ids {
		if w.row(id).Status == row.Executing {
			n++
		}
	}
	return n
}

// row returns a row that must exist.
func (w *world) row(id int64) row.Row {
	w.Helper()
	rows, _, err := w.store.Get(w.Context(), nil, []int64{id})
	if err != nil || len(rows) != 1 {
		w.Fatalf("row %d: %v, %v", id, rows, err)
	}
	return rows[0]
}

func nothing(context.Context, *delaytask.Task) error { return nil }

// ended says when and why a processor's context ended.
type ended struct {
	at    time.Time
	cause error
}

// untilEnd is a processor that works for d, and obeys its context.
func untilEnd(d time.Duration, ends chan<- ended) processor.Func {
	return func(ctx context.Context, _ *delaytask.Task) error {
		if lifecycle.Sleep(ctx, d) {
			return nil
		}
		if ends != nil {
			ends <- ended{time.Now(), context.Cause(ctx)}
		}
		return context.Cause(ctx)
	}
}

func TestTaskRunsAtItsDueTimeAndCompletes(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, serving{"a": nothing})
		saved := time.Now()
		id := w.save(e, "a", 3*time.Second)
		time.Sleep(10 * time.Second)
		w.completed(id, 2*time.Millisecond)
		if got := w.runs.of(id)[0].task.Expected.Sub(saved); got < 3*time.Second || got > 3001*time.Millisecond {
			w.Errorf("promised after %v, want 3s", got)
		}
		if r := w.row(id); r.Version != 2 || r.Finish().IsZero() || r.Execution < r.Expected {
			w.Errorf("row after the run: %+v", r)
		}
	})
}
