// Package control saves tasks and changes them by request.
//
//	save.go      saves tasks, or has the tasks changed that carry their keys
//	conflict.go  changes the unfinished task that carries the key of a save
//	control.go   changes single tasks for operators and programs
//	change.go    tries such a change until it is stored or refused
//	bulk.go      changes all tasks that match a filter
//	schedule.go  makes what is stored of a schedule
package control

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/events"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/save"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

// Control saves tasks and changes them by request.
type Control struct {
	*events.Events
	running Running
	nextID  func() int64
	saver   *save.Saver
	turns   turns
}

// Running is what a change of rows tells the parts that run them.
type Running interface {
	Written(d ...row.Due)    // rows are committed, pending
	Committing(d ...row.Due) // rows are pending once a caller's transaction commits
	Stopped(id int64)        // a task that executes was cancelled
	Wake(tags []string)      // rows of the tags may be due that no node knows of
}

// Config says what a task has that is saved without it.
type Config struct {
	Registry    *processor.Registry
	NextID      func() int64 // draws the id of a new task
	TTR         time.Duration
	MaxAttempts int
}

// New makes what saves and changes tasks, and tells running of it.
func New(ev *events.Events, running Running, cfg Config) *Control {
	c := &Control{Events: ev, running: running, nextID: cfg.NextID, turns: turns{of: map[int64]*turn{}}}
	c.saver = save.New(ev.Table, save.Config{
		NextID: cfg.NextID, Registry: cfg.Registry, TTR: cfg.TTR, MaxAttempts: cfg.MaxAttempts,
		Committed: running.Written, InTx: running.Committing,
		Stored: ev.Saved, Ended: ev.Health.Saved,
	})
	return c
}

// CloseSaves stores what is queued and refuses further saves with [delaytask.ErrClosed].
func (e *Control) CloseSaves(ctx context.Context) error { return e.saver.Close(ctx) }

// Saved is what became of a save that succeeded.
type Saved struct {
	// Row is the new row, without the moments that the database sets: when it was created and updated. It is nil where
	// it may be one of an earlier save, under the id that the caller has chosen.
	Row *row.Row
	// Rescheduled says that the existing task of the key has the time of the save.
	Rescheduled bool
}

// Save stores one task and returns its id when it is committed. When an unfinished task carries the key, the id is that
// task's, and the mode of the save says whether it is rescheduled.
func (e *Control) Save(ctx context.Context, task delaytask.Save) (int64, Saved, error) {
	id, stored, err := e.saver.Save(ctx, task)
	if task.OnConflict == "" || !errors.Is(err, delaytask.ErrDuplicate) {
		return id, Saved{Row: stored}, err
	}
	return e.onConflict(ctx, &task, id, nil)
}

// SaveTx is Save inside the caller's transaction. An existing task that it meets is locked until the end of that, so
// one look decides. Nothing is retried but the save itself, when the existing task has ended meanwhile.
func (e *Control) SaveTx(ctx context.Context, tx store.Tx, task delaytask.Save) (int64, error) {
	for range conflictRounds {
		id, err := e.saver.SaveTx(ctx, tx, task)
		if task.OnConflict == "" || !errors.Is(err, delaytask.ErrDuplicate) {
			return id, err
		}
		if id, err = e.rescheduleLocked(ctx, tx, &task); !errors.Is(err, errKeyFree) {
			return id, err
		}
	}
	return 0, delaytask.ErrContended
}

// conflictCallers is how many existing tasks a bulk save changes at a time, apart from those that it changes together.
const conflictCallers = 8

// SaveAll stores many tasks, chunk by chunk; the results stand in the order of the tasks. With an error there are no
// results, and nothing is stored; it is a [delaytask.BatchError] when it is about one task. Existing tasks are
// rescheduled once all chunks are stored, so an item may also meet an earlier one with its key.
func (e *Control) SaveAll(ctx context.Context, tasks []delaytask.Save) ([]delaytask.SaveResult, error) {
	results, err := e.saver.SaveAll(ctx, tasks)
	var existing []int64
	met := map[int64][]int{} // the items that have met a task, in their order
	for i, r := range results {
		if tasks[i].OnConflict != "" && errors.Is(r.Err, delaytask.ErrDuplicate) {
			if met[r.ID] == nil {
				existing = append(existing, r.ID)
			}
			met[r.ID] = append(met[r.ID], i)
		}
	}
	sent := map[int64]*row.Change{}
	size := func(id *int64) int { return len(tasks[met[*id][0]].Body) }
	for _, page := range batch.Pages(existing, save.MaxRows, save.MaxBytes, size) {
		first := func(id int64) *delaytask.Save { return &tasks[met[id][0]] }
		changes, applied := e.rescheduleTogether(ctx, page, first)
		for _, c := range changes {
			if !applied {
				sent[c.ID] = &c
				continue
			}
			i := met[c.ID][0]
			results[i].ID, results[i].Rescheduled, results[i].Err = c.ID, true, nil
			if met[c.ID] = met[c.ID][1:]; len(met[c.ID]) == 0 {
				delete(met, c.ID)
			}
		}
	}
	places := make(chan struct{}, conflictCallers)
	var group sync.WaitGroup
	for id, items := range met {
		places <- struct{}{}
		group.Go(func() {
			defer func() { <-places }()
			unsure := sent[id]
			for _, i := range items {
				id, saved, err := e.onConflict(ctx, &tasks[i], id, unsure)
				results[i].ID, results[i].Rescheduled, results[i].Err = id, saved.Rescheduled, err
				unsure = nil
			}
		})
	}
	group.Wait()
	return results, err
}
