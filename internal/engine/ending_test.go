package engine

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// takeAll pops n tasks of the tag.
func (w *world) takeAll(e *Engine, tag string, n int) (refs []row.Ref) {
	w.Helper()
	for len(refs) < n {
		tasks, err := e.Pop(w.Context(), PopRequest{Tags: []string{tag}, Max: n - len(refs), Waits: true, Wait: time.Minute})
		if err != nil || len(tasks) == 0 {
			w.Fatalf("popped %d tasks of %d, %v", len(refs), n, err)
		}
		for _, task := range tasks {
			refs = append(refs, row.Ref{ID: task.ID, Version: task.Version})
		}
	}
	return refs
}

func (w *world) saveMany(e *Engine, tag string, n int, opts ...processor.Option) (ids []int64) {
	w.Helper()
	for range n {
		ids = append(ids, w.save(e, tag, 0, opts...))
	}
	return ids
}

// slowUpdate lets every update take d, and tells how many rows each one carried.
func (w *world) slowUpdate(d time.Duration) (store Store, sizes func() []int) {
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
			if err != nil {
				w.Fatal(err)
			}
		}
		time.Sleep(time.Millisecond) // or both would do it in the same moment
		for i, err := range e.FinishAll(w.Context(), refs) {
			if want := i < 100; errors.Is(err, processor.ErrLeaseLost) != want || !want && err != nil {
				w.Fatalf("token %d: %v", i, err)
			}
		}
		for _, ref := range refs {
			if r := w.row(ref.ID); r.Status != row.Completed || r.Version != ref.Version+1 {
				w.Fatalf("row: %+v", r)
			}
		}
		if got := sizes(); len(got) > 6 {
			w.Errorf("1,100 ends in statements of %v rows", got)
		}
		if n := len(e.pops.handed); n != 0 {
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
		if err := e.Finish(w.Context(), refs[0].ID, refs[0].Version); err != nil {
			w.Fatal(err)
		}
		if _, err := w.idle(w.store, nil).Cancel(w.Context(), nil, Ref{ID: ids[1]}, false); err != nil {
			w.Fatal(err)
		}
		tokens := []row.Ref{refs[0], refs[1], refs[2], refs[2], {ID: refs[3].ID, Version: refs[3].Version - 1}, refs[3],
			{ID: 77, Version: 1}, refs[4], {ID: refs[4].ID, Version: refs[4].Version + 1}}
		lost, unknown := processor.ErrLeaseLost, processor.ErrNotFound
		answers := e.FinishAll(w.Context(), tokens)
		for i, want := range []error{lost, lost, nil, lost, lost, nil, unknown, nil, lost} {
			if !errors.Is(answers[i], want) {
				w.Errorf("token %d: %v, want %v", i, answers[i], want)
			}
		}
	})
}

func TestFinishesOfManyCallersShareStatements(t *testing.T) {
	inBubble(t, func(w *world) {
		store, sizes := w.slowUpdate(5 * time.Millisecond)
		e := w.engine(store, nil)
		w.saveMany(e, "a", 200)
		refs := w.takeAll(e, "a", 200)
		before := len(sizes())
		var callers sync.WaitGroup
		for i, ref := range refs {
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
		callers.Wait()
		if got := sizes()[before:]; len(got) > 4 {
			w.Errorf("200 ends in statements of %v rows", got)
		}
		for i, ref := range refs {
			want := []row.Status{row.Completed, row.Failed, row.Pending}[i%3]
			if r := w.row(ref.ID); r.Status != want || want == row.Pending && r.Attempt != 0 {
				w.Fatalf("row: %+v", r)
			}
		}
	})
}

// Whatever becomes of the statements, each token gets the answer that the table bears out.
func TestEndsWhileTheDatabaseAnswersBadly(t *testing.T) {
	refuse := func(class row.Class) func(func() (int, error)) (int, error) {
		return func(func() (int, error)) (int, error) { return 0, classError(class, "no") }
	}
	lost := func(apply func() (int, error)) (int, error) {
		_, _ = apply()
		return 0, classError(row.ClassUnknown, "the reply is lost")
	}
	for name, c := range map[string]struct {
		fault       func(func() (int, error)) (int, error)
		statesFail  bool
		failedFirst int // calls that meet the fault
	}{
		"NotApplied":                {refuse(row.ClassNotApplied), false, 2},
		"UnknownAndNotApplied":      {refuse(row.ClassUnknown), false, 2},
		"LostReply":                 {lost, false, 1},
		"LostReplyAndNoReadingBack": {lost, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				var armed, calls atomic.Int64
				update := updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
					apply := func() (int, error) { return w.store.Update(ctx, nil, changes) }
					if armed.Load() == 1 && calls.Add(1) <= int64(c.failedFirst) {
						return c.fault(apply)
					}
					return apply()
				}}
				e := w.engine(statesHook{update, func(ctx context.Context, ids []int64) ([]row.State, error) {
					if armed.Load() == 1 && c.statesFail {
						return nil, classError(row.ClassNotApplied, "no")
					}
					return w.store.States(ctx, ids)
				}}, nil)
				w.saveMany(e, "a", 20)
				refs := w.takeAll(e, "a", 20)
				armed.Store(1)
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
				for _, ref := range refs {
					if r := w.row(ref.ID); r.Status != row.Completed || r.Version != ref.Version+1 {
						w.Errorf("row: %+v", r)
					}
				}
			})
		})
	}
}

// statesHook stands in for States.
type statesHook struct {
	Store
	hook func(ctx context.Context, ids []int64) ([]row.State, error)
}

func (s statesHook) States(ctx context.Context, ids []int64) ([]row.State, error) {
	return s.hook(ctx, ids)
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
		w.saveMany(e, "a", 5, processor.WithTTR(time.Hour))
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
			if r := w.row(ref.ID); r.Status != row.Completed || r.Finish.Sub(r.Execution) > 3*time.Second {
				w.Errorf("row: %+v", r)
			}
		}
		unlock()
		if err := e.Finish(w.Context(), refs[0].ID, refs[0].Version); err != nil {
			w.Error(err)
		}
	})
}

func TestEndThatNobodyWaitsForAnyMore(t *testing.T) {
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
		w.save(e, "a", 0, processor.WithTTR(time.Hour))
		first := w.take(e, "a")
		time.Sleep(time.Minute)
		if err := other.Release(w.Context(), first.ID, first.Version); err != nil {
			w.Fatal(err)
		}
		began := time.Now()
		second := w.take(e, "a")
		if took := time.Since(began); took > 2*time.Second || second.Attempt != 1 {
			w.Errorf("handed out again after %v: %+v", took, second)
		}
		if err := e.Finish(w.Context(), second.ID, second.Version); err != nil {
			w.Error(err)
		}
	})
}

func TestTaskThatIsFinishedOnAnotherNodeTellsWhenItStarted(t *testing.T) {
	inBubble(t, func(w *world) {
		e, other := w.engine(w.store, nil), w.engine(w.store, nil)
		w.save(e, "a", 3*time.Second, processor.WithTTR(time.Hour))
		task := w.take(e, "a")
		time.Sleep(time.Minute)
		if err := other.Finish(w.Context(), task.ID, task.Version); err != nil {
			w.Fatal(err)
		}
		if r := w.row(task.ID); r.Execution < r.Expected || r.Execution.Sub(r.Expected) > time.Second {
			w.Errorf("started %v after it was due", r.Execution.Sub(r.Expected))
		}
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
	for name, result := range map[string]error{"Nil": nil, "Error": errors.New("late"), "HandOver": processor.HandOver(0)} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				ends := make(chan ended, 1)
				tokens := make(chan row.Ref, 1)
				logged := &warnings{}
				e := w.engine(w.store, map[string]processor.Func{"a": func(ctx context.Context, task *processor.Task) error {
					tokens <- row.Ref{ID: task.ID, Version: task.Version}
					<-ctx.Done()
					ends <- ended{time.Now(), context.Cause(ctx)}
					return result
				}}, func(c *Config) {
					c.Logger = slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelWarn}))
				})
				id := w.save(e, "a", 0, processor.WithTTR(time.Hour))
				token := <-tokens
				time.Sleep(10 * time.Second)
				finished := time.Now()
				if err := e.Finish(w.Context(), token.ID, token.Version); err != nil {
					w.Fatal(err)
				}
				end := <-ends
				if took := end.at.Sub(finished); took > 3*time.Second || !errors.Is(end.cause, processor.ErrLeaseLost) {
					w.Errorf("the context ended after %v with %v", took, end.cause)
				}
				time.Sleep(10 * time.Second)
				r := w.row(id)
				if r.Status != row.Completed || r.Version != token.Version+1 || r.Execution.Sub(r.Expected) > time.Second {
					w.Errorf("row: %+v", r)
				}
				if e.hands.holds(id) || e.runs.len() != 0 {
					w.Error("it is still in hand")
				}
				if got := logged.all(); got != "" {
					w.Errorf("logged %q", got)
				}
			})
		})
	}
}

func TestEndingsAfterAPanicAreTriedAlone(t *testing.T) {
	inBubble(t, func(w *world) {
		var once sync.Once
		e := w.engine(updateHook{w.store, func(ctx context.Context, changes []row.Change) (int, error) {
			once.Do(func() { panic("a bug") })
			return w.store.Update(ctx, nil, changes)
		}}, nil)
		w.save(e, "a", 0)
		task := w.take(e, "a")
		if err := e.Finish(w.Context(), task.ID, task.Version); err != nil {
			w.Error(err)
		}
		synctest.Wait()
	})
}

func TestFinishesOfSmallBatchesShareStatements(t *testing.T) {
	inBubble(t, func(w *world) {
		store, sizes := w.slowUpdate(5 * time.Millisecond)
		e := w.engine(store, nil)
		w.saveMany(e, "a", 400)
		refs := w.takeAll(e, "a", 400)
		before := len(sizes())
		var callers sync.WaitGroup
		for batch := range slices.Chunk(refs, 10) {
			callers.Go(func() {
				// The first of each batch is named twice: the second time it is over.
				answers := e.FinishAll(w.Context(), append(slices.Clone(batch), batch[0]))
				for i, err := range answers {
					if want := i == len(batch); errors.Is(err, processor.ErrLeaseLost) != want || !want && err != nil {
						w.Errorf("token %d: %v", i, err)
					}
				}
			})
		}
		callers.Wait()
		if got := sizes()[before:]; len(got) > 4 {
			w.Errorf("40 batches of 10 ends in statements of %v rows", got)
		}
		for _, ref := range refs {
			if r := w.row(ref.ID); r.Status != row.Completed || r.Version != ref.Version+1 {
				w.Fatalf("row: %+v", r)
			}
		}
	})
}
