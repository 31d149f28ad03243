package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// move is one step of a random history.
type move struct {
	kind  string
	node  int // which of the nodes
	task  int // which of the tasks saved so far
	delay time.Duration
}

func moves() *rapid.Generator[[]move] {
	kinds := []string{
		"save", "save", "save", "saveFlaky", "saveFlaky", "cancel", "reschedule",
		"start", "stop", "crash", "wait", "wait", "wait",
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) move {
		return move{
			kind:  rapid.SampledFrom(kinds).Draw(t, "kind"),
			node:  rapid.IntRange(0, 2).Draw(t, "node"),
			task:  rapid.IntRange(0, 50).Draw(t, "task"),
			delay: time.Duration(rapid.IntRange(0, 5000).Draw(t, "delay")) * time.Millisecond,
		}
	}), 5, 60)
}

// believed is what the model knows of a task: only what callers and processors were told.
type believed struct {
	id        int64
	cancelled bool // while it was pending: it must never start
	stopped   bool // while it ran: it must not be completed
	failures  int  // attempts that ended with an error
}

// history plays moves on up to three nodes.
type history struct {
	*world
	nodes   [3]*Engine
	crashes int

	mu    sync.Mutex
	tasks []*believed
	byID  map[int64]*believed
}

func (h *history) start(i int) {
	if h.nodes[i] != nil {
		return
	}
	processors := map[string]processor.Func{"plain": untilEnd(200*time.Millisecond, nil), "flaky": h.flaky}
	h.nodes[i] = h.engine(h.store, processors, func(c *Config) {
		c.TTR, c.Quarantine, c.StopGrace = 2*time.Second, 1000, 100*time.Millisecond
		c.Backoff = processor.Constant(700 * time.Millisecond)
	})
}

// flaky fails at every first attempt.
func (h *history) flaky(ctx context.Context, task *processor.Task) error {
	if !lifecycle.Sleep(ctx, 50*time.Millisecond) {
		return ctx.Err()
	}
	if task.Attempt > 1 {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if b := h.byID[task.ID]; b != nil {
		b.failures++
	}
	return errors.New("boom")
}

func (h *history) save(e *Engine, tag string, delay time.Duration) {
	b := &believed{id: e.ids.Next()}
	h.mu.Lock()
	h.tasks, h.byID[b.id] = append(h.tasks, b), b
	h.mu.Unlock()
	h.world.save(e, tag, delay, processor.WithID(b.id))
}

func (h *history) play(m move) error {
	if m.kind == "wait" {
		time.Sleep(m.delay)
		return nil
	}
	if m.kind == "start" {
		h.start(m.node)
		return nil
	}
	e := h.nodes[m.node]
	if e == nil {
		return nil
	}
	switch m.kind {
	case "save":
		h.save(e, "plain", m.delay)
	case "saveFlaky":
		h.save(e, "flaky", m.delay)
	case "stop":
		h.nodes[m.node] = nil
		h.lossy[e] = true
		if err := e.Stop(h.Context()); err != nil && !errors.Is(err, processor.ErrGraceEnded) {
			return err
		}
	case "crash":
		h.nodes[m.node] = nil
		h.crashes++
		h.crash(e)
	case "cancel", "reschedule":
		return h.change(e, m)
	}
	return nil
}

func (h *history) change(e *Engine, m move) error {
	if len(h.tasks) == 0 {
		return nil
	}
	b := h.tasks[m.task%len(h.tasks)]
	if m.kind == "reschedule" {
		_, err := e.Reschedule(h.Context(), nil, Ref{ID: b.id}, m.delay, time.Time{}, nil)
		if errors.Is(err, processor.ErrFinished) || errors.Is(err, processor.ErrNotPending) {
			return nil
		}
		return err
	}
	met, err := e.Cancel(h.Context(), nil, Ref{ID: b.id}, false)
	if errors.Is(err, processor.ErrFinished) {
		return nil
	}
	b.cancelled = met == row.Pending && len(h.runs.of(b.id)) == 0
	b.stopped = true
	return err
}

// check compares the table with the model once everything had the time to happen.
func (h *history) check() error {
	for _, b := range h.tasks {
		r, runs := h.row(b.id), len(h.runs.of(b.id))
		switch {
		case b.cancelled && runs > 0:
			return fmt.Errorf("a task ran %d times after it was cancelled: %+v", runs, r)
		case b.stopped && r.Status != row.Cancelled:
			return fmt.Errorf("a cancelled task is %v: %+v", r.Status, r)
		case b.stopped:
			continue
		case r.Status != row.Completed:
			return fmt.Errorf("an accepted task is lost: %+v", r)
		case r.Attempt > b.failures+1:
			return fmt.Errorf("attempt %d after %d failures: %+v", r.Attempt, b.failures, r)
		case r.CrashCount > h.crashes:
			return fmt.Errorf("%d lost leases after %d crashes: %+v", r.CrashCount, h.crashes, r)
		}
	}
	return nil
}

func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		script := moves().Draw(rt, "moves")
		var wrong error
		inBubble(t, func(w *world) {
			h := &history{world: w, byID: map[int64]*believed{}}
			h.start(0)
			time.Sleep(time.Second)
			for _, m := range script {
				if wrong = h.play(m); wrong != nil {
					return
				}
			}
			h.start(0)
			time.Sleep(40 * time.Second)
			wrong = h.check()
		})
		if wrong != nil || t.Failed() {
			rt.Fatalf("%v", wrong)
		}
	})
}
