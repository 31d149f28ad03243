package role

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/scheduler"
)

const (
	inFlight      = 64 // operations of a saver at once; beyond that it falls behind its pace
	patient       = 20 * time.Second
	shortPatience = 300 * time.Millisecond
	longest       = 8 * time.Second // delay
	keys          = 40              // that tasks with a key share
	bulk          = 50
	again         = 500 * time.Millisecond // between two saves of one task whose outcome is unknown
)

type saver struct {
	*scheduler.Scheduler
	journal *nodeJournal
	db      *sql.DB // for transactions of a caller
	rand    *rand.Rand
	clock   Clock // the database's
	heard   *listener
	backlog

	mu     sync.Mutex
	recent []int64 // ids of tasks that can still be changed, perhaps
}

// save makes tasks at its pace until ctx ends, whatever the answers are, and pauses while the workers do not keep up.
// It finishes what is under way at the end.
func save(
	ctx context.Context, s *scheduler.Scheduler, j *nodeJournal, heard *listener, o Order, n *child.Narrator,
) (err error) {
	db, err := pool(o.DSN)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Stop(context.WithoutCancel(ctx)), db.Close()) }()
	v := &saver{Scheduler: s, journal: j, db: db, rand: rand.New(rand.NewPCG(o.Seed, 1)), clock: o.Clock, heard: heard}
	j.write(journal.Event{Kind: journal.NodeStart})
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, BurstSignal)
	var telling sync.WaitGroup
	defer telling.Wait()
	telling.Go(func() { tellState(ctx, n) })
	telling.Go(func() { v.watch(ctx, db) })
	var bursting sync.WaitGroup
	bursting.Go(func() { v.burst(ctx, asked) })
	v.goOn(ctx, o)
	bursting.Wait()
	j.write(journal.Event{Kind: journal.NodeStop})
	j.write(journal.Event{Kind: journal.NodeStopped})
	return nil
}

// pool is as an application would have it, except for timeouts, because a Commit takes no context.
func pool(dsn string) (*sql.DB, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	cfg.InterpolateParams = true
	cfg.ReadTimeout, cfg.WriteTimeout, cfg.Timeout = 5*time.Second, 5*time.Second, 5*time.Second
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(8)
	return db, nil
}

func (v *saver) goOn(ctx context.Context, o Order) {
	deadly := make(<-chan time.Time)
	if o.DeathEvery > 0 {
		t := time.NewTicker(o.DeathEvery)
		defer t.Stop()
		deadly = t.C
	}
	pace := time.NewTicker(time.Second / time.Duration(max(o.Rate, 1)))
	defer pace.Stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	slots := make(chan struct{}, inFlight)
	do := func(op func()) {
		select {
		case slots <- struct{}{}:
			wg.Go(func() {
				op()
				<-slots
			})
		case <-ctx.Done():
		}
	}
	for n := 0; ; n++ {
		if n < o.Poisons {
			p := v.task(Tags[deadlyTag], operation{verb: poison}, fmt.Sprint("poison", n))
			do(func() { v.saveOne(p) })
		}
		select {
		case <-ctx.Done():
			return
		case <-deadly:
			tag, d := crashes[v.rand.IntN(len(crashes))].with(v.rand)
			p := v.task(tag, d, fmt.Sprint("death", n))
			do(func() { v.saveOne(p) })
		case <-pace.C:
			if !v.large.Load() {
				do(v.next(n))
			}
		}
	}
}

// next draws the n-th operation. It draws all of it at once, because operations run concurrently.
func (v *saver) next(n int) func() {
	unique := fmt.Sprint(n)
	tag, d := drawn(v.rand)
	p := v.task(tag, d, unique)
	switch kind := v.rand.IntN(100); {
	case kind < 8:
		return func() { v.saveTx(p) }
	case kind < 18:
		p.key = fmt.Sprint("k", v.rand.IntN(keys))
		return func() { v.saveOne(p) }
	case kind < 23:
		items := make([]*task, bulk)
		for i := range items {
			tag, d := easy(v.rand)
			items[i] = v.task(tag, d, fmt.Sprint(unique, ".", i))
		}
		return func() { v.saveAll(items) }
	case kind < 29:
		return v.change(journal.CallCancel, journal.ReturnCancel, func(ctx context.Context, id int64) error {
			_, err := v.Cancel(ctx, delaytask.ID(id))
			return err
		})
	case kind < 35:
		delay := time.Duration(v.rand.Int64N(int64(longest)))
		return v.change(journal.CallReschedule, journal.ReturnReschedule, func(ctx context.Context, id int64) error {
			_, err := v.Reschedule(ctx, delaytask.ID(id), delay)
			return err
		})
	case kind < 36:
		return v.change(journal.CallRetry, journal.ReturnRetry, func(ctx context.Context, id int64) error {
			return v.Retry(ctx, delaytask.ID(id))
		})
	}
	return func() { v.saveOne(p) }
}

type task struct {
	op, tag, key, body string
	id                 int64     // that it is saved again under; 0: it has none yet
	due                time.Time // zero: the delay counts
	delay, patience    time.Duration
}

func (v *saver) task(tag string, d operation, unique string) *task {
	t := &task{op: v.journal.op(), tag: tag, patience: patient}
	t.body = d.body(v.journal.node + "." + unique)
	if v.rand.IntN(2) == 0 {
		t.patience = shortPatience
	}
	if v.rand.IntN(4) > 0 {
		t.delay = time.Duration(v.rand.Int64N(int64(longest)))
	}
	return t
}

func (t *task) options() (opts []delaytask.Option) {
	if t.key != "" {
		opts = append(opts, delaytask.WithKey(t.key))
	}
	if t.id != 0 {
		opts = append(opts, delaytask.WithID(t.id))
	}
	if !t.due.IsZero() {
		opts = append(opts, delaytask.WithTime(t.due))
	}
	return opts
}

func (v *saver) call(t *task) journal.Event {
	expected := t.due
	if expected.IsZero() {
		expected = v.clock.At(time.Now()).Add(t.delay - v.heard.doubt()).Truncate(time.Microsecond)
	}
	return journal.Event{
		Kind: journal.CallSave, Op: t.op, ID: t.id, Tag: t.tag, Key: t.key, Body: t.body, Expected: expected,
	}
}

// saveAnswer is what is written down after it, before anything depends on it.
func saveAnswer(op string, id int64, err error) journal.Event {
	if out, is := errors.AsType[*delaytask.OutcomeUnknownError](err); is {
		id = out.ID
	}
	return journal.Event{Kind: journal.ReturnSave, Op: op, ID: id, Error: saved(err), Detail: text(err)}
}

// Savers that make more tasks than the machine can run would test overload alone: every task would be late. So they
// begin nothing while so many are overdue.
const (
	mostOverdue  = 5000
	lookOverdue  = time.Second
	overdueQuery = `SELECT COUNT(*) FROM (SELECT 1 FROM delay_task_message
		WHERE status = 0 AND due_time < UTC_TIMESTAMP(6) - INTERVAL 2 SECOND LIMIT ?) t`
)

// backlog knows whether too many tasks are overdue.
type backlog struct{ large atomic.Bool }

// watch looks once a second until ctx ends. Without an answer of the database the last one holds.
func (b *backlog) watch(ctx context.Context, db *sql.DB) {
	next := time.NewTicker(lookOverdue)
	defer next.Stop()
	for {
		if n, err := overdue(ctx, db, mostOverdue); err == nil {
			b.large.Store(n == mostOverdue)
		}
		select {
		case <-next.C:
		case <-ctx.Done():
			return
		}
	}
}

// overdue counts up to most tasks that are overdue and not begun.
func overdue(ctx context.Context, db *sql.DB, most int) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, lookOverdue)
	defer cancel()
	err = db.QueryRowContext(ctx, overdueQuery, most).Scan(&n)
	return n, err
}

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
		due := v.clock.At(time.Now()).Add(burstIn).Truncate(time.Millisecond)
		tasks := make([]*task, Burst)
		for i := range tasks {
			body := operation{verb: succeed}.body(fmt.Sprintf("%s.burst%d.%d", v.journal.node, n, i))
			tasks[i] = &task{op: v.journal.op(), tag: Tags[0], body: body, due: due, patience: patient}
		}
		v.saveAll(tasks)
	}
}
