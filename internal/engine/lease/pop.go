package lease

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/events"
	"github.com/delaytask/delaytask/internal/engine/run"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// pops hands due tasks to callers who ask for them. A waiting pop is a free slot of its tags, and the claimer of the
// processors claims for it. A row that was handed out stays owned until it is ended or its lease is over. The end of
// the lease spends the attempt.
type pops struct {
	*deps
	holders *holders

	looks   *batch.Coalescer[*look]
	finders context.Context // ends when a stop begins

	// mu guards what follows. The locks of the run queue and of attempts may be taken while it is held.
	mu      sync.Mutex
	waiting []*waiter // the longest first
	closed  bool
}

// waiter is a caller who waits for tasks.
type waiter struct {
	tags  []string
	most  int
	want  int // how many are still wanted
	got   []*run.Attempt
	bytes int // of the bodies in got
	ready chan struct{}
	room  func(bytes int) bool // nil: there always is
	full  bool                 // a row was refused for lack of room
}

// popBytes bounds the bodies that one pop hands out. The first task is handed out whatever its size.
const popBytes = 16 << 20

// gather is how long a pop of several tasks waits for the rest of a batch.
const gather = 2 * time.Millisecond

func newPops(c *deps, holders *holders, finders context.Context) *pops {
	p := &pops{deps: c, holders: holders, finders: finders}
	p.looks = batch.New(batch.Config[*look]{ // pops that ask at the same time share a read
		Flush: p.lookFor, Panicked: p.lookPanicked, Flushers: 2, MoreAt: lookTags,
		MaxItems: lookTags, Count: func(l *look) int { return len(l.tags) },
	})
	return p
}

// PopRequest says what a Pop asks for.
type PopRequest struct {
	// Caller is whom a service serves. What pops of different tags cost is bounded for each. "": no one of others.
	Caller string
	Tags   []string
	Max    int           // tasks, at most
	TTR    time.Duration // length of the lease; 0: each task's own
	Waits  bool          // Wait counts; otherwise the pop waits until its context ends
	Wait   time.Duration
	// Room takes memory for a body, and reports whether there was any. With it, hooks get no bodies. Nil: there always
	// is some.
	Room func(bytes int) bool
}

// Take waits until tasks of the tags are due, and hands out up to the maximum. fresh says that one of the tags was not
// served here before. Without tasks and error nothing is due, or ctx has ended.
func (p *pops) Take(ctx context.Context, r PopRequest, fresh bool) ([]*delaytask.Task, error) {
	got, err := p.pop(ctx, r, fresh)
	if len(got) == 0 {
		return nil, err
	}
	p.holders.setTTR(ctx, got, r.TTR)
	return tasksOf(got), nil
}

// claimWait is how long a pop that does not wait gives the claim of a due row. Other pops may be faster.
const claimWait = 500 * time.Millisecond

func (p *pops) join(r PopRequest) (*waiter, error) {
	w := &waiter{tags: r.Tags, want: r.Max, most: r.Max, ready: make(chan struct{}, 1), room: r.Room}
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, delaytask.ErrClosed
	}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	p.arm.Tags.Await(r.Tags, 1)
	p.runqueue.Pops.Want(r.Tags, r.Max)
	return w, nil
}

// answerWait is how long a pop whose wait is over waits for the answer of the table. Without one it cannot know that
// nothing is due.
const answerWait = 2 * time.Second

// pop looks at the table and waits for tasks. Without tasks and error nothing is due. A pop that waits less than
// claimWait looks before it joins the waiting ones. Otherwise a row whose timer fires here would be claimed for it
// meanwhile, and the look would find nothing due.
func (p *pops) pop(ctx context.Context, r PopRequest, fresh bool) ([]*run.Attempt, error) {
	l := &look{tags: r.Tags, fresh: fresh}
	if r.Waits && r.Wait < claimWait {
		l.rows = r.Max
		select {
		case <-p.ask(l).done:
		case <-time.After(answerWait):
			return nil, table.ErrSilent
		case <-ctx.Done():
			return nil, nil
		}
		switch {
		case l.err != nil:
			return nil, l.err
		case l.found:
			r.Wait = claimWait
		case r.Wait == 0:
			return nil, nil
		}
		l = nil
	}
	w, err := p.join(r)
	if err != nil {
		return nil, err
	}
	err = p.await(ctx, w, r, l)
	got := p.leave(w)
	switch {
	case len(got) > 0:
		return got, nil
	case w.full:
		return nil, fmt.Errorf("%w: the tasks that are handed out and not read yet fill the memory that there is for "+
			"them", delaytask.ErrOverloaded)
	case err != nil || ctx.Err() != nil:
		return nil, err
	default:
		claim, _ := p.Health.Failing()
		return nil, claim
	}
}

// await waits until the waiter has got something or its wait is over. It asks the table at its begin, where the table
// may know more than this process, and at its end unless the table was read a moment ago.
func (p *pops) await(ctx context.Context, w *waiter, r PopRequest, l *look) error {
	var over, ask <-chan time.Time
	var answered chan struct{}
	if r.Waits {
		alarm := time.NewTimer(r.Wait)
		defer alarm.Stop()
		over = alarm.C
	}
	if l != nil {
		switch in, asks := p.runqueue.Pops.LookIn(w.tags); {
		case l.fresh || asks && in == 0:
			answered = p.ask(l).done
		case asks:
			ask = time.After(in)
		}
	}
	for late := false; ; {
		select {
		case <-w.ready:
			if w.most > 1 {
				lifecycle.Sleep(ctx, gather)
			}
			return nil
		case <-ask:
			answered = p.ask(l).done
		case <-answered:
			answered = nil
			if l.err != nil || late && !l.found {
				return l.err
			}
			if late {
				over = time.After(claimWait)
			}
		case <-over:
			switch {
			case late && answered != nil:
				return table.ErrSilent
			case late || answered == nil && p.Health.Sees():
				return nil
			case answered == nil:
				l = &look{tags: w.tags, rows: w.most}
				answered = p.ask(l).done
			}
			late, over, ask = true, time.After(answerWait), nil
		case <-ctx.Done():
			return nil
		}
	}
}

// leave takes a waiter out and returns what it got.
func (p *pops) leave(w *waiter) []*run.Attempt {
	p.mu.Lock()
	p.waiting = slices.DeleteFunc(p.waiting, func(other *waiter) bool { return other == w })
	got, rest := w.got, w.want
	p.mu.Unlock()
	p.arm.Tags.Await(w.tags, -1)
	p.runqueue.Pops.Want(w.tags, -rest)
	return got
}

func tasksOf(runs []*run.Attempt) []*delaytask.Task {
	tasks := make([]*delaytask.Task, len(runs))
	for i, a := range runs {
		tasks[i] = events.TaskOf(&a.Row, a.Due)
	}
	return tasks
}

// Deliver gives a claimed row to the caller who waits longest, or releases it when none waits.
func (p *pops) Deliver(a *run.Attempt) {
	now := max(p.Now(), a.Due)
	if refused, _ := p.pool.Settler.Refused(a, now); refused {
		return
	}
	if !p.give(a, now) {
		p.pool.Settler.Add(a, run.Released(a, now))
		return
	}
	p.pool.Attempts.Remove(a)
	p.runqueue.Yield(a.Item, runqueue.Slot)
}

func (p *pops) give(a *run.Attempt, now row.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.waiting, func(w *waiter) bool { return p.hasRoom(w, a) })
	if i < 0 || p.closed {
		return false
	}
	w := p.waiting[i]
	w.got = append(w.got, a)
	w.bytes += len(a.Row.Body)
	w.want--
	late := p.pool.Measure(a, now)
	a.HandedOut(now, late)
	p.runqueue.Pops.Want(w.tags, -1)
	held := a
	if w.room != nil {
		held = a.Held()
	}
	p.holders.hand(held)
	p.Tell(delaytask.EventStarted, &a.Row, nil) // before its caller can end it
	table.Signal(w.ready)
	return true
}

// hasRoom reports whether a waiter takes the row. A waiter whose bodies would exceed popBytes, or the room for them,
// wants nothing more. What was claimed for it goes to the next waiter, or is released.
func (p *pops) hasRoom(w *waiter, a *run.Attempt) bool {
	if w.want == 0 || !slices.Contains(w.tags, a.Row.Tag) {
		return false
	}
	w.full = w.room != nil && !w.room(len(a.Row.Body))
	if w.full || len(w.got) > 0 && w.bytes+len(a.Row.Body) > popBytes {
		p.runqueue.Pops.Want(w.tags, -w.want)
		w.want = 0
		table.Signal(w.ready)
		return false
	}
	return true
}

// close sends waiting callers away. Tasks that were handed out stay with their holders. Other nodes take them when the
// lease is over.
func (p *pops) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.holders.close()
	for _, w := range p.waiting {
		table.Signal(w.ready)
	}
}
