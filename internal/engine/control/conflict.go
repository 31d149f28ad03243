package control

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/save"
	"github.com/delaytask/delaytask/internal/store"
)

// A save inserts its row. When an unfinished task carries the key, the insert is refused, and that task is changed by
// the same guarded UPDATE as every other change. So a save that meets nothing costs one statement, and one that meets a
// claim loses or wins against it as a whole. When the existing task ends meanwhile, its key is free: the save begins
// again.

// conflictRounds bounds how often a save begins again. In each round another task took the key and ended.
const conflictRounds = 8

// rescheduleLocked is rescheduleExisting in a transaction.
func (e *Control) rescheduleLocked(ctx context.Context, tx store.Tx, task *delaytask.Save) (int64, error) {
	key := row.TagKey{Tag: task.Tag, Key: row.ScopedKey(task.Headers[delaytask.AppHeader], task.Key)}
	rows, broken, err := e.Store.LockActive(ctx, tx, key)
	r, err := table.OnlyRow(rows, broken, err)
	if err != nil {
		return conflictAnswer(0, err)
	}
	now, err := e.saver.AtMost(ctx)
	if err != nil {
		return 0, err
	}
	c, err := conflictChange(r, task, now)
	if err == nil {
		var applied int
		if applied, err = e.Store.Update(ctx, tx, []row.Change{c}); err == nil && applied != 1 {
			err = delaytask.ErrContended
		}
	}
	if err == nil {
		e.armAfter(tx, table.AfterChange(r, c))
	}
	return conflictAnswer(r.ID, err)
}

// rescheduleTogether changes existing tasks in one statement, each by the mode of the save that has met it. It returns
// the changes that it sent, and whether all of them are applied. The others are changed task by task.
func (e *Control) rescheduleTogether(
	ctx context.Context, existing []int64, metBy func(id int64) *delaytask.Save,
) (sent []row.Change, applied bool) {
	now, err := e.saver.AtMost(ctx)
	if err != nil {
		return nil, false
	}
	ctx, cancel := e.CallIn(ctx)
	defer cancel()
	rows, _, err := e.Store.Get(ctx, nil, existing)
	if err != nil {
		return nil, false
	}
	var after []row.Due
	for i := range rows {
		if c, err := conflictChange(&rows[i], metBy(rows[i].ID), now); err == nil {
			sent, after = append(sent, c), append(after, table.AfterChange(&rows[i], c))
		}
	}
	if len(sent) < 2 {
		return nil, false
	}
	n, err := e.Update(ctx, sent)
	switch {
	case err == nil && n == len(sent):
		e.running.Written(after...)
		return sent, true
	case err == nil, row.ClassOf(err) == row.ClassUnknown:
		return sent, false // some may be applied
	default:
		return nil, false
	}
}

// onConflict ends a save that has met a task with its key. An earlier change for it may have been applied.
func (e *Control) onConflict(
	ctx context.Context, task *delaytask.Save, existing int64, unsure *row.Change,
) (int64, Saved, error) {
	for range conflictRounds {
		id, err := e.rescheduleExisting(ctx, task, existing, unsure)
		if !errors.Is(err, errKeyFree) {
			return id, Saved{Rescheduled: err == nil}, err
		}
		id, stored, err := e.saver.Save(ctx, *task)
		if !errors.Is(err, delaytask.ErrDuplicate) {
			return id, Saved{Row: stored}, err
		}
		existing, unsure = id, nil
	}
	return 0, Saved{}, save.KeepUnknown(task.ID, delaytask.ErrContended)
}

// How a save ends without a change of the existing task.
var (
	errKeyFree   = errors.New("the task that carried the key has ended")
	errAsWanted  = errors.New("the task is as the save asks for")
	errOtherTime = errors.New("the mode leaves the task as it is")
)

// rescheduleExisting changes the task that carries the key of a save by the mode of the save. It returns the id of that
// task, or [errKeyFree].
func (e *Control) rescheduleExisting(
	ctx context.Context, task *delaytask.Save, existing int64, unsure *row.Change,
) (int64, error) {
	if err := e.turns.take(ctx, existing); err != nil {
		return 0, e.unchanged(task, err, unsure != nil)
	}
	defer e.turns.pass(existing)
	_, after, err := e.tryChange(ctx, nil, Ref{ID: existing}, func(r *row.Row, _ row.Time) (row.Change, error) {
		now, err := e.saver.AtMost(ctx)
		if err != nil {
			return row.Change{}, err
		}
		return conflictChange(r, task, now)
	}, tries{patient: true, unsure: unsure})
	if err == nil {
		e.armAfter(nil, after)
	}
	id, answer := conflictAnswer(existing, err)
	if answer == nil || errors.Is(answer, errKeyFree) {
		return id, answer
	}
	if left, ok := errors.AsType[unsureError](err); ok {
		return 0, e.unchanged(task, left.error, true)
	}
	return id, e.unchanged(task, answer, false)
}

// unchanged is the error of a save that has not changed the existing task, as far as is known: where it is unsure, an
// earlier change for it may be applied.
func (e *Control) unchanged(task *delaytask.Save, err error, unsure bool) error {
	if unsure {
		return &delaytask.OutcomeUnknownError{ID: cmp.Or(task.ID, e.nextID()), Err: err}
	}
	return save.KeepUnknown(task.ID, err)
}

// conflictChange is what the mode of a save does to the task that carries its key.
func conflictChange(r *row.Row, task *delaytask.Save, now row.Time) (row.Change, error) {
	c, err := pendingOnly(r)
	if err != nil {
		return c, err
	}
	due := cmp.Or(r.Due, r.Expected, now)
	wanted := save.Expected(now, task.Delay, task.At)
	if task.MaxWait > 0 && wanted > due {
		wanted = max(due, min(wanted, r.Created.Add(task.MaxWait)))
	}
	if task.OnConflict == delaytask.ReplaceTimeAndBody && !bytes.Equal(r.Body, task.Body) {
		c.Body, c.Attempt, c.CrashCount = task.Body, 0, 0
	}
	switch {
	case task.OnConflict == delaytask.OnlyEarlier && wanted >= due,
		task.OnConflict == delaytask.OnlyLater && wanted <= due:
		return c, errOtherTime
	case wanted == due && c.Body == nil:
		// Not written, or saves without end would keep claims from a task that has reached its max wait.
		return c, errAsWanted
	}
	return c, moveTo(&c, wanted, now)
}

// conflictAnswer is what a save returns that has met the existing task, after the change of that ended with err.
func conflictAnswer(existing int64, err error) (int64, error) {
	switch {
	case err == nil, errors.Is(err, errAsWanted):
		return existing, nil
	case errors.Is(err, errOtherTime):
		return existing, &delaytask.DuplicateError{ID: existing}
	case errors.Is(err, delaytask.ErrNotPending):
		return existing, &delaytask.NotPendingError{ID: existing}
	case errors.Is(err, delaytask.ErrFinished), errors.Is(err, delaytask.ErrNotFound):
		return 0, errKeyFree
	default:
		return 0, err
	}
}

// turns lets saves of this process that have met one task change it one after the other. All at once, each version
// would refuse all of them but one.
type turns struct {
	mu sync.Mutex // nothing is taken while it is held
	of map[int64]*turn
}

type turn struct {
	taken chan struct{} // holds one while a save has its turn
	saves int           // that have their turn or wait for it
}

// take waits for the caller's turn at the task. It returns the cause of ctx when that ends first.
func (t *turns) take(ctx context.Context, id int64) error {
	t.mu.Lock()
	own, ok := t.of[id]
	if !ok {
		own = &turn{taken: make(chan struct{}, 1)}
		t.of[id] = own
	}
	own.saves++
	t.mu.Unlock()
	select {
	case own.taken <- struct{}{}:
		return nil
	case <-ctx.Done():
		t.leave(id, own)
		return context.Cause(ctx)
	}
}

func (t *turns) pass(id int64) {
	t.mu.Lock()
	own := t.of[id]
	t.mu.Unlock()
	<-own.taken
	t.leave(id, own)
}

func (t *turns) leave(id int64, own *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if own.saves--; own.saves == 0 {
		delete(t.of, id)
	}
}
