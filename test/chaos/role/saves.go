package role

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/journal"
)

// saveOne does what a caller is told to do: when the outcome is unknown it saves again with the same id, until it knows.
func (v *saver) saveOne(t *task) {
	opts := make([]delaytask.Option, 0, 2)
	if t.key != "" {
		opts = append(opts, delaytask.WithKey(t.key))
	}
	v.diary.write(v.call(t, 0))
	id, err := v.try(t, t.patience, opts)
	v.answered(saveAnswer(t.op, id, err))
	v.settle(t, err, opts)
}

// settle saves again with the id, as often as it takes.
func (v *saver) settle(t *task, err error, opts []delaytask.Option) {
	for {
		out, unknown := errors.AsType[*delaytask.OutcomeUnknownError](err)
		if !unknown {
			return
		}
		<-time.After(again)
		next := *t
		next.op = v.diary.op()
		v.diary.write(v.call(&next, out.ID))
		var id int64
		id, err = v.try(&next, patient, append(opts, delaytask.WithID(out.ID)))
		v.answered(saveAnswer(next.op, id, err))
	}
}

func (v *saver) try(t *task, patience time.Duration, opts []delaytask.Option) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return v.SaveDelayTask(ctx, t.tag, t.body, t.delay, opts...)
}

// saveAll saves many tasks with one call. Each stands for itself, also when it has to be saved again.
func (v *saver) saveAll(tasks []*task) {
	items := make([]delaytask.Item, len(tasks))
	calls, answers := make([]journal.Event, len(tasks)), make([]journal.Event, len(tasks))
	for i, t := range tasks {
		items[i] = delaytask.Item{Tag: t.tag, Body: t.body, Delay: t.delay}
		calls[i] = v.call(t, 0)
	}
	v.diary.write(calls...)
	ctx, cancel := context.WithTimeout(context.Background(), tasks[0].patience)
	defer cancel()
	results, err := v.SaveDelayTasks(ctx, items)
	if results == nil {
		results = slices.Repeat([]delaytask.SaveResult{{Err: err}}, len(tasks))
	}
	for i, t := range tasks {
		answers[i] = saveAnswer(t.op, results[i].ID, results[i].Err)
	}
	v.answered(answers...)
	var settling sync.WaitGroup
	for i, t := range tasks {
		settling.Go(func() { v.settle(t, results[i].Err, nil) })
	}
	settling.Wait()
}

// saveTx saves in a transaction of the caller's. When its commit has no answer, nobody but the table knows.
func (v *saver) saveTx(t *task) {
	v.diary.write(v.call(t, 0))
	id, err := v.inTransaction(t)
	v.diary.write(journal.Event{Kind: journal.ReturnSave, Op: t.op, ID: id, Error: txSaved(err), Detail: text(err)})
}

var errCommit = errors.New("commit")

func (v *saver) inTransaction(t *task) (int64, error) {
	ctx, cancel := context.WithTimeout(context.Background(), t.patience)
	defer cancel()
	tx, err := v.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, err
	}
	defer tx.Rollback()
	id, err := v.SaveDelayTaskTx(ctx, tx, t.tag, t.body, t.delay)
	if err != nil {
		return 0, err
	}
	if err := tx.Commit(); err != nil {
		return id, fmt.Errorf("%w: %w", errCommit, err)
	}
	return id, nil
}

// txSaved: what was not committed is not there, whatever the library said of the statement.
func txSaved(err error) journal.Class {
	switch {
	case err == nil:
		return journal.OK
	case errors.Is(err, errCommit):
		return journal.Unknown
	}
	return journal.Refused
}

// remembered bounds the tasks that changes are drawn from.
const remembered = 200

func (v *saver) remember(id int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.recent = append(v.recent, id); len(v.recent) > remembered {
		v.recent = v.recent[1:]
	}
}

// change does something to a task that was saved lately.
func (v *saver) change(call, answer journal.Kind, do func(context.Context, int64) error) func() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.recent) == 0 {
		return func() {}
	}
	id, op := v.recent[v.rand.IntN(len(v.recent))], v.diary.op()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		v.diary.write(journal.Event{Kind: call, Op: op, ID: id})
		err := do(ctx, id)
		v.diary.write(journal.Event{Kind: answer, Op: op, ID: id, Error: changed(err), Detail: text(err)})
	}
}
