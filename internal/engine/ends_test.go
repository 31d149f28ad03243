package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/engine/lease"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

// takeAll pops n tasks of the tag.
func (w *world) takeAll(e *Engine, tag string, n int) (refs []row.Ref) {
	w.Helper()
	for len(refs) < n {
		tasks, err := e.Pop(
			w.Context(),
			lease.PopRequest{Tags: []string{tag}, Max: n - len(refs), Waits: true, Wait: time.Minute},
		)
		if err != nil || len(tasks) == 0 {
			w.Fatalf("popped %d tasks of %d, %v", len(refs), n, err)
		}
		for _, task := range tasks {
			refs = append(refs, row.Ref{ID: task.ID, Version: task.Version})
		}
	}
	return refs
}

func (w *world) saveMany(e *Engine, tag string, n int, opts ...delaytask.Option) []int64 {
	w.Helper()
	return w.many(e, n, tag, 0, opts...)
}

// finished checks that the tasks were completed with these tokens.
func (w *world) finished(refs []row.Ref) {
	w.Helper()
	for _, ref := range refs {
		if r := w.row(ref.ID); r.Status != row.Completed || r.Version != ref.Version+1 {
			w.Fatalf("row: %+v", r)
		}
	}
}

// slowUpdate lets every update take d, and tells how many rows each one carried.
func (w *world) slowUpdate(d time.Duration) (store store.Store, sizes func() []int) {
	var mu sync.Mutex
	var carried []int
	store = updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
		mu.Lock()
		carried = append(carried, len(changes))
		mu.Unlock()
		time.Sleep(d)
		return w.store.Update(ctx, nil, changes)
	}}
	return store, func() []int {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(carried)
	}
}

func TestFinishAllEndsAPageInOneStatement(t *testing.T) {
	inBubble(t, func(w *world) {
		store, sizes := w.slowUpdate(0)
		e, other := w.engine(store, nil), w.engine(w.store, nil)
		w.saveMany(e, "a", 1200)
		refs := w.takeAll(e, "a", 1200)
		for _, err := range other.FinishAll(w.Context(), refs[:100]) { // on a node that did not hand them out
			w.must(err)
		}
		time.Sleep(time.Millisecond) // or both would do it in the same moment
		for i, err := range e.FinishAll(w.Context(), refs) {
			if want := i < 100; errors.Is(err, delaytask.ErrLeaseLost) != want || !want && err != nil {
				w.Fatalf("token %d: %v", i, err)
			}
		}
		w.finished(refs)
		if got := sizes(); len(got) > 6 {
			w.Errorf("1,100 ends in statements of %v rows", got)
		}
		if n := e.runqueue.Counts().Owned; n != 0 {
			w.Errorf("%d tasks are still in hand", n)
		}
	})
}

func TestFinishAllAnswersEachTokenForItself(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		ids := w.saveMany(e, "a", 5)
		refs := w.takeAll(e, "a", 5)
		slices.SortFunc(refs, func(a, b row.Ref) int { return slices.Index(ids, a.ID) - slices.Index(ids, b.ID) })
		w.must(e.Finish(w.Context(), refs[0].ID, refs[0].Version))
		_, err := w.idle(w.store, nil).Cancel(w.Context(), nil, control.Ref{ID: ids[1]}, false)
		w.must(err)
		tokens := []row.Ref{refs[0], refs[1], refs[2], refs[2], {ID: refs[3].ID, Version: refs[3].Version - 1}, refs[3],
			{ID: 77, Version: 1}, refs[4], {ID: refs[4].ID, Version: refs[4].Version + 1}}
		lost, unknown := delaytask.ErrLeaseLost, delaytask.ErrNotFound
		answers := e.FinishAll(w.Context(), tokens)
		for i, want := range []error{lost, lost, nil, lost, lost, nil, unknown, nil, lost} {
			if !errors.Is(answers[i], want) {
				w.Errorf("token %d: %v, want %v", i, answers[i], want)
			}
		}
	})
}

func TestEndsOfManyCallersShareStatements(t *testing.T) {
	inBubble(t, func(w *world) {
		store, sizes := w.slowUpdate(5 * time.Millisecond)
		e := w.engine(store, nil)
		w.saveMany(e, "a", 400)
		refs := w.takeAll(e, "a", 400)
		single, inBatches := refs[:200], refs[200:]
		before := len(sizes())
		var callers sync.WaitGroup
		for i, ref := range single {
			callers.Go(func() {
				var err error
				switch i % 3 {
				case 0:
					err = e.Finish(w.Context(), ref.ID, ref.Version)
				case 1:
					err = e.Fail(w.Context(), ref.ID, ref.Version, processor.Permanent(errors.New("boom")))
				default:
					err = e.Fail(w.Context(), ref.ID, ref.Version, processor.Snooze(time.Hour))
				}
				if err != nil {
					w.Error(err)
				}
			})
		}
		for batch := range slices.Chunk(inBatches, 10) {
			callers.Go(func() {
				// The first of each batch is named twice: the second time it is over.
				answers := e.FinishAll(w.Context(), append(slices.Clone(batch), batch[0]))
				for i, err := range answers {
					if want := i == len(batch); errors.Is(err, delaytask.ErrLeaseLost) != want || !want && err != nil {
						w.Errorf("token %d: %v", i, err)
					}
				}
			})
		}
		callers.Wait()
		if got := sizes()[before:]; len(got) > 4 {
			w.Errorf("200 ends and 20 batches of 10 in statements of %v rows", got)
		}
		for i, ref := range single {
			want := []row.Status{row.Completed, row.Failed, row.Pending}[i%3]
			if r := w.row(ref.ID); r.Status != want || want == row.Pending && r.Attempt != 0 {
				w.Fatalf("row: %+v", r)
			}
		}
		w.finished(inBatches)
	})
}

// Whatever becomes of the statements, each token gets the answer that the table bears out.
func TestEndsWhileTheDatabaseAnswersBadly(t *testing.T) {
	refuse := func(class row.Class) func(func() error) error {
		return func(func() error) error { return classError(class, "no") }
	}
	lost := func(update func() error) error {
		_ = update()
		return classError(row.ClassUnknown, "the reply is lost")
	}
	type badly struct {
		fault       func(update func() error) error
		statesFail  bool
		failedFirst int // calls that meet the fault
	}
	inBubbles(t, map[string]badly{
		"NotApplied":                {refuse(row.ClassNotApplied), false, 2},
		"UnknownAndNotApplied":      {refuse(row.ClassUnknown), false, 2},
		"LostReply":                 {lost, false, 1},
		"LostReplyAndNoReadingBack": {lost, true, 1},
	}, func(w *world, c badly) {
		var armed atomic.Bool
		var calls atomic.Int64
		store := at(w.store, "Update", func(_ context.Context, do func() error) error {
			if armed.Load() && calls.Add(1) <= int64(c.failedFirst) {
				return c.fault(do)
			}
			return do()
		})
		e := w.engine(at(store, "States", func(_ context.Context, do func() error) error {
			if armed.Load() && c.statesFail {
				return classError(row.ClassNotApplied, "no")
			}
			return do()
		}), nil)
		w.saveMany(e, "a", 20)
		refs := w.takeAll(e, "a", 20)
		armed.Store(true)
		for i, err := range e.FinishAll(w.Context(), refs[:10]) {
			if err != nil {
				w.Errorf("token %d: %v", i, err)
			}
		}
		calls.Store(0)
		var callers sync.WaitGroup
		for _, ref := range refs[10:] {
			callers.Go(func() {
				if err := e.Finish(w.Context(), ref.ID, ref.Version); err != nil {
					w.Error(err)
				}
			})
		}
		callers.Wait()
		w.finished(refs)
	})
}

func TestRowThatTheDatabaseRefusesCostsNoOtherItsEnd(t *testing.T) {
	inBubble(t, func(w *world) {
		var bad atomic.Int64
		e := w.engine(updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
			if slices.ContainsFunc(changes, func(c row.Change) bool { return c.ID == bad.Load() }) {
				return 0, classError(row.ClassCaller, "cannot be stored")
			}
			return w.store.Update(ctx, nil, changes)
		}}, nil)
		w.saveMany(e, "a", 5)
		refs := w.takeAll(e, "a", 5)
		bad.Store(refs[2].ID)
		for i, err := range e.FinishAll(w.Context(), refs) {
			if refused := err != nil && row.ClassOf(err) == row.ClassCaller; refused != (i == 2) {
				w.Errorf("token %d: %v", i, err)
			}
		}
	})
}

func TestLockedRowCostsNoOtherItsEnd(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.engine(w.store, nil)
		w.saveMany(e, "a", 5, delaytask.WithTTR(time.Hour))
		refs := w.takeAll(e, "a", 5)
		unlock := w.store.Lock(refs[0].ID)
		ctx, cancel := context.WithTimeout(w.Context(), 5*time.Second)
		defer cancel()
		for i, err := range e.FinishAll(ctx, refs) {
			if ended := errors.Is(err, context.DeadlineExceeded); ended != (i == 0) {
				w.Errorf("token %d: %v", i, err)
			}
		}
		for _, ref := range refs[1:] {
			if r := w.row(ref.ID); r.Status != row.Completed || r.Finish().Sub(r.Execution) > 3*time.Second {
				w.Errorf("row: %+v", r)
			}
		}
		unlock()
		w.must(e.Finish(w.Context(), refs[0].ID, refs[0].Version))
	})
}

func TestEndWhoseCallerHasLeft(t *testing.T) {
	inBubble(t, func(w *world) {
		store, _ := w.slowUpdate(time.Second)
		e := w.engine(store, nil)
		w.save(e, "a", 0)
		ref := w.takeAll(e, "a", 1)[0]
		ctx, cancel := context.WithTimeout(w.Context(), 100*time.Millisecond)
		defer cancel()
		if err := e.Finish(ctx, ref.ID, ref.Version); !errors.Is(err, context.DeadlineExceeded) {
			w.Errorf("finished with %v", err)
		}
		time.Sleep(2 * time.Second)
		if r := w.row(ref.ID); r.Status != row.Completed {
			w.Errorf("a statement that was sent is not torn by a caller who leaves: %+v", r)
		}
	})
}

// A task that another node ended and put back is taken again here at once, not when its old lease would have ended.
func TestTaskThatWasGivenBackOnAnotherNodeIsTakenHereAgain(t *testing.T) {
	inBubble(t, func(w *world) {
		e, other := w.engine(w.store, nil), w.engine(w.store, nil)
		w.save(e, "a", 0, delaytask.WithTTR(time.Hour))
		first := w.take(e, "a")
		time.Sleep(time.Minute)
		w.must(other.Release(w.Context(), first.ID, first.Version))
		began := time.Now()
		second := w.take(e, "a")
		if took := time.Since(began); took > 2*time.Second || second.Attempt != 1 {
			w.Errorf("handed out again after %v: %+v", took, second)
		}
		w.must(e.Finish(w.Context(), second.ID, second.Version))
	})
}

// warnings collects what is logged.
type warnings struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *warnings) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *warnings) all() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// The receiver of a call may answer while the call is still going on.
func TestTaskThatIsFinishedByItsTokenWhileItsProcessorRuns(t *testing.T) {
	results := map[string]error{"Nil": nil, "Error": errors.New("late"), "HandOver": processor.HandOver(0)}
	inBubbles(t, results, func(w *world, result error) {
		ends := make(chan ended, 1)
		tokens := make(chan row.Ref, 1)
		logged, log := listen()
		e := w.engine(w.store, serving{"a": func(ctx context.Context, task *delaytask.Task) error {
			tokens <- row.Ref{ID: task.ID, Version: task.Version}
			<-ctx.Done()
			ends <- ended{time.Now(), context.Cause(ctx)}
			return result
		}}, log)
		id := w.save(e, "a", 0, delaytask.WithTTR(time.Hour))
		token := <-tokens
		time.Sleep(10 * time.Second)
		finished := time.Now()
		w.must(e.Finish(w.Context(), token.ID, token.Version))
		end := <-ends
		if took := end.at.Sub(finished); took > 3*time.Second || !errors.Is(end.cause, delaytask.ErrLeaseLost) {
			w.Errorf("the context ended after %v with %v", took, end.cause)
		}
		time.Sleep(10 * time.Second)
		w.finished([]row.Ref{token})
		if r := w.row(id); r.Execution.Sub(r.Expected) > time.Second {
			w.Errorf("row: %+v", r)
		}
		if e.runqueue.Owns(id) || e.pool.Attempts.Len() != 0 {
			w.Error("it is still in hand")
		}
		if strings.Contains(logged.all(), "WARN") || strings.Contains(logged.all(), "ERROR") {
			w.Errorf("logged %q", logged.all())
		}
	})
}

func TestEndingsAfterAPanicAreTriedAlone(t *testing.T) {
	inBubble(t, func(w *world) {
		var once sync.Once
		e := w.engine(at(w.store, "Update", func(_ context.Context, do func() error) error {
			once.Do(func() { panic("a bug") })
			return do()
		}), nil)
		w.save(e, "a", 0)
		task := w.take(e, "a")
		w.must(e.Finish(w.Context(), task.ID, task.Version))
		synctest.Wait()
	})
}
