package role

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// saveOne does what callers should: it saves again with the same id while the outcome is unknown.
func (v *saver) saveOne(t *task) {
	v.untilKnown([]*task{t}, func(tasks []*task, patience time.Duration) []delaytask.SaveResult {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		id, err := v.SaveDelayTask(ctx, t.tag, t.body, t.delay, tasks[0].options()...)
		return []delaytask.SaveResult{{ID: id, Err: err}}
	})
}

// saveAll saves many tasks with one call, and those again together whose outcome is unknown.
func (v *saver) saveAll(tasks []*task) {
	v.untilKnown(tasks, func(tasks []*task, patience time.Duration) []delaytask.SaveResult {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		items := make([]delaytask.Item, len(tasks))
		for i, t := range tasks {
			items[i] = delaytask.Item{Tag: t.tag, Body: t.body, Delay: t.delay, Options: t.options()}
		}
		results, err := v.SaveDelayTasks(ctx, items)
		if results == nil {
			results = slices.Repeat([]delaytask.SaveResult{{Err: err}}, len(tasks))
		}
		return results
	})
}

// untilKnown saves tasks until the outcome of each is known. The first try has the patience of the first task.
func (v *saver) untilKnown(tasks []*task, save func([]*task, time.Duration) []delaytask.SaveResult) {
	for patience := tasks[0].patience; ; patience = patient {
		calls, answers := make([]journal.Event, len(tasks)), make([]journal.Event, len(tasks))
		for i, t := range tasks {
			calls[i] = v.call(t)
		}
		v.journal.write(calls...)
		for i, r := range save(tasks, patience) {
			answers[i] = saveAnswer(tasks[i].op, r.ID, r.Err)
		}
		v.journal.write(answers...)
		if tasks = v.unknown(tasks, answers); len(tasks) == 0 {
			return
		}
		<-time.After(again)
	}
}

// unknown returns the tasks to be saved again, and remembers those that were accepted, but not the thousands of a
// burst.
func (v *saver) unknown(tasks []*task, answers []journal.Event) (unknown []*task) {
	for i, t := range tasks {
		switch {
		case answers[i].Error == journal.Unknown:
			next := *t
			next.op, next.id = v.journal.op(), answers[i].ID
			unknown = append(unknown, &next)
		case answers[i].Error == journal.OK && len(tasks) <= bulk:
			v.remember(answers[i].ID)
		}
	}
	return unknown
}

// saveTx saves in a transaction of the caller's. When its commit has no answer, only the table shows the outcome.
func (v *saver) saveTx(t *task) {
	v.journal.write(v.call(t))
	id, err := v.inTransaction(t)
	v.journal.write(journal.Event{
		Kind: journal.ReturnSave, Op: t.op, ID: id, Error: txSaved(err), Detail: text(err),
	})
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

// txSaved is the class of a save in a transaction: without a commit nothing is stored.
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
	id, op := v.recent[v.rand.IntN(len(v.recent))], v.journal.op()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), patient)
		defer cancel()
		v.journal.write(journal.Event{Kind: call, Op: op, ID: id})
		err := do(ctx, id)
		v.journal.write(journal.Event{Kind: answer, Op: op, ID: id, Error: changed(err), Detail: text(err)})
	}
}

// Burst is how many tasks a saver saves that are due in the same millisecond, when it gets the signal BurstSignal.
const (
	Burst       = 3000
	BurstSignal = syscall.SIGUSR1
)

// burstIn is when they are due: after the last of them has been stored, where nothing is in the way.
const burstIn = 4 * time.Second

// burst saves that many tasks whenever it is asked, until ctx ends. It finishes the last burst.
func (v *saver) burst(ctx context.Context, asked <-chan os.Signal) {
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-asked:
		}
		due := time.Now().Add(v.ahead + burstIn).Truncate(time.Millisecond)
		tasks := make([]*task, Burst)
		for i := range tasks {
			body := operation{verb: succeed}.body(fmt.Sprintf("%s.burst%d.%d", v.journal.node, n, i))
			tasks[i] = &task{op: v.journal.op(), tag: Tags[0], body: body, due: due, patience: patient}
		}
		v.saveAll(tasks)
	}
}
