package events

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/row"
)

// waits answers those who wait for the end of a task. One reader serves them all: thousands of waits share their
// statements from the first look on. It asks for the states of all these tasks, whichever process ends them. When a
// wait begins, and when its task ends in this process, the row is read at once.
type waits struct {
	mu      sync.Mutex // guards what follows; innermost
	tasks   map[int64]*awaited
	turn    []*awaited // in the order of their reads
	look    []*awaited // whose rows are to be read now
	reading bool
	closed  bool
	kick    chan struct{} // something is to be read now
	readers sync.WaitGroup
}

// awaited is a task that callers wait for.
type awaited struct {
	id      int64
	callers []chan found
	looked  bool // it is in look
}

// found is what a read of one task has found. Both are empty when the task is gone.
type found struct {
	rows   []row.Row
	broken []row.Broken
}

// ended reports that the row reads as a task that will not change by itself.
func (f *found) ended() bool { return len(f.rows) == 0 || f.rows[0].Status.Final() }

const (
	waitEvery = 500 * time.Millisecond // between two reads of states
	waitPage  = 1000                   // tasks in one read of states
	waitRows  = 50                     // tasks in one read of rows, whose bodies may be large
)

// WaitTask returns the task once it has ended, as its row then reads. It returns [delaytask.ErrNotFound] when there is
// no such row, and [delaytask.ErrClosed] when the engine has stopped.
func (e *Events) WaitTask(ctx context.Context, id int64) (rows []row.Row, broken []row.Broken, err error) {
	answer := e.await(id)
	defer e.leaveWait(id, answer)
	select {
	case f := <-answer:
		if len(f.rows)+len(f.broken) == 0 {
			return nil, nil, delaytask.ErrNotFound
		}
		return f.rows, f.broken, nil
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	case <-e.Life.Done():
		return nil, nil, delaytask.ErrClosed
	}
}

func (e *Events) await(id int64) chan found {
	w := &e.watch.waits
	answer := make(chan found, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.tasks[id]
	if a == nil {
		a = &awaited{id: id}
		w.tasks[id] = a
		w.turn = append(w.turn, a)
	}
	a.callers = append(a.callers, answer)
	e.watch.watchers.Add(1)
	// Whatever ends from here on is noticed, so a task is not missed that ends during this read.
	w.lookAt(a)
	table.Signal(w.kick)
	if !w.reading && !w.closed {
		w.reading = true
		w.readers.Go(e.answerWaits)
	}
	return answer
}

func (e *Events) leaveWait(id int64, answer chan found) {
	w := &e.watch.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	e.watch.watchers.Add(-1)
	a := w.tasks[id]
	if a == nil {
		return
	}
	a.callers = slices.DeleteFunc(a.callers, func(c chan found) bool { return c == answer })
	if len(a.callers) == 0 {
		delete(w.tasks, id)
	}
}

// ended lets the reader look at a task at once.
func (w *waits) ended(id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if a := w.tasks[id]; a != nil {
		w.lookAt(a)
		table.Signal(w.kick)
	}
}

// lookAt has the row of a task read after the next kick or tick. The caller holds the lock.
func (w *waits) lookAt(a *awaited) {
	if !a.looked {
		a.looked = true
		w.look = append(w.look, a)
	}
}

// close waits for the reader, which ends with the life.
func (w *waits) close() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.readers.Wait()
}

// answerWaits reads until no caller waits.
func (e *Events) answerWaits() {
	w := &e.watch.waits
	tick := time.NewTicker(waitEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.kick:
		case <-tick.C:
			e.readStates(w.page())
		case <-e.Life.Done():
			return
		}
		for ids := range slices.Chunk(w.takeLook(), waitRows) {
			e.answer(ids)
		}
		if w.idle() {
			return
		}
	}
}

// idle reports that no caller waits any more. Then the next wait starts a reader.
func (w *waits) idle() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reading = len(w.tasks) > 0
	if !w.reading {
		w.turn, w.look = nil, nil
	}
	return !w.reading
}

// page returns the tasks whose states were not read for the longest time.
func (w *waits) page() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn = w.waited(w.turn)
	n := min(len(w.turn), waitPage)
	page := slices.Clone(w.turn[:n])
	w.turn = append(w.turn[n:], page...)
	return row.IDsOf(page, (*awaited).task)
}

// takeLook returns the tasks whose rows are to be read. One that ends during the read is looked at again.
func (w *waits) takeLook() []int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	look := w.waited(w.look)
	w.look = nil
	for _, a := range look {
		a.looked = false
	}
	return row.IDsOf(look, (*awaited).task)
}

// waited leaves out the tasks that no caller waits for any more. A later wait for one of them has begun anew.
func (w *waits) waited(tasks []*awaited) []*awaited {
	return slices.DeleteFunc(tasks, func(a *awaited) bool { return w.tasks[a.id] != a })
}

func (a *awaited) task() int64 { return a.id }

// readStates finds out which of the tasks have ended or are gone.
func (e *Events) readStates(ids []int64) {
	if len(ids) == 0 {
		return
	}
	ctx, cancel := e.Call()
	defer cancel()
	states, err := e.ReadBack(ctx, "reading tasks that are waited for", ids)
	if err != nil {
		return
	}
	w := &e.watch.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		s, exists := states[id]
		if a := w.tasks[id]; a != nil && (!exists || s.Status.Final()) {
			w.lookAt(a)
		}
	}
}

// answer reads the tasks and answers those who wait for one that has ended. The others are waited for further.
func (e *Events) answer(ids []int64) {
	ctx, cancel := e.Call()
	defer cancel()
	rows, broken, err := e.Store.Get(ctx, nil, ids)
	if err != nil {
		e.Failed("reading tasks that are waited for", err)
	}
	read := make(map[int64]found, len(ids))
	for i := range rows {
		read[rows[i].ID] = found{rows: rows[i : i+1]}
	}
	for i := range broken {
		read[broken[i].ID] = found{broken: broken[i : i+1]}
	}
	w := &e.watch.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range ids {
		a, f := w.tasks[id], read[id]
		switch {
		case a == nil:
		case err != nil:
			w.lookAt(a)
		case f.ended():
			for _, caller := range a.callers {
				caller <- f.clone()
			}
			delete(w.tasks, id)
		}
	}
}

// clone gives each caller a row of its own.
func (f found) clone() found {
	f.rows = slices.Clone(f.rows)
	for i := range f.rows {
		f.rows[i].Body = bytes.Clone(f.rows[i].Body)
	}
	return f
}
