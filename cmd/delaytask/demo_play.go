package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/sqlstore"
)

// play performs the script: it starts the service, kills it, starts it again, and does what operators and other
// programs do beside it. What it prints comes from the events of the service and from the rows.
type play struct {
	dsn      string
	prefix   string
	narrator *narrator

	db        *sql.DB // for plain SQL
	operator  *delaytask.Scheduler
	offset    offset
	events    chan event
	processes []*process // the last one runs

	ids      map[string]int64 // by the scene's name
	starts   []event
	finished map[string]int // how many tasks have succeeded
	refused  bool           // the duplicate was
}

// manyEvents is more than a play has: a process that is stopped never waits for a reader.
const manyEvents = 1000

func newPlay(ctx context.Context, dsn, prefix string, log *slog.Logger, out io.Writer, s screen) (*play, error) {
	operator, err := delaytask.Open(ctx, dsn, delaytask.Config{Logger: log, NodeName: commandNode})
	if err != nil {
		return nil, err
	}
	p := &play{
		dsn: dsn, prefix: prefix, operator: operator, events: make(chan event, manyEvents),
		ids: map[string]int64{}, finished: map[string]int{},
	}
	db, kind, err := sqlstore.Connect(ctx, dsn)
	if err != nil {
		return nil, errors.Join(err, p.close(ctx))
	}
	p.db = db.DB
	if !kind.Embedded() { // else its clock is that of this machine
		if p.offset, err = measureOffset(ctx, p.db); err != nil {
			return nil, errors.Join(err, p.close(ctx))
		}
	}
	p.narrator = &narrator{w: out, screen: s, offset: p.offset}
	p.narrator.introduce(dsn, kind)
	return p, nil
}

func (p *play) run(ctx context.Context) error {
	if err := p.start(true); err != nil {
		return err
	}
	if err := p.awaitSaves(ctx); err != nil {
		return err
	}
	if err := p.operate(ctx); err != nil {
		return err
	}
	p.narrator.runs()
	return p.follow(ctx)
}

func (p *play) start(save bool) error {
	process, err := startProcess(order{DSN: p.dsn, Prefix: p.prefix, Save: save}, p.events)
	if err != nil {
		return err
	}
	p.processes = append(p.processes, process)
	p.narrator.started(process.pid(), save)
	return nil
}

func (p *play) running() *process { return p.processes[len(p.processes)-1] }

// next waits for the next event. A service that ends by itself is a failure.
func (p *play) next(ctx context.Context, alarm <-chan time.Time) (e event, rang bool, err error) {
	select {
	case e = <-p.events:
		return e, false, nil
	case <-alarm:
		return e, true, nil
	case err := <-p.running().done:
		p.running().done <- err // for stop
		return e, false, errors.Join(errors.New("the service ended by itself"), p.running().failure(err))
	case <-ctx.Done():
		return e, false, context.Cause(ctx)
	}
}

func (p *play) awaitSaves(ctx context.Context) error {
	for {
		e, _, err := p.next(ctx, nil)
		switch {
		case err != nil:
			return err
		case e.Kind == eventReady:
			return nil
		case e.Kind == eventSaved:
			p.ids[e.Name] = e.ID
			p.narrator.saved(sceneOf(e.Name))
		default:
			p.take(e)
		}
	}
}

// follow prints the events as they come, kills the service in the middle of the report, and returns when all tasks have
// ended.
func (p *play) follow(ctx context.Context) error {
	var alarm <-chan time.Time
	for !p.done() {
		e, rang, err := p.next(ctx, alarm)
		if err != nil {
			return err
		}
		if rang {
			alarm = nil
			if err := p.crash(); err != nil {
				return err
			}
			continue
		}
		p.take(e)
		if e.Kind == eventStarted && sceneOf(e.Name).killed && len(p.processes) == 1 {
			alarm = time.After(killAfter)
		}
	}
	return p.running().stop()
}

// crash kills the service without a warning and starts it again.
func (p *play) crash() error {
	p.narrator.killing(p.running().pid())
	if err := p.running().kill(); err != nil {
		return err
	}
	return p.start(false)
}

func (p *play) take(e event) {
	switch e.Kind {
	case eventStarted:
		p.starts = append(p.starts, e)
		p.narrator.start(e, p.startsOf(e.Name))
	case eventEnded:
		if e.Error == "" {
			p.finished[e.Name]++
		}
		p.narrator.end(e)
	}
}

func (p *play) startsOf(name string) (n int) {
	for _, e := range p.starts {
		if e.Name == name {
			n++
		}
	}
	return n
}

// workersOf counts the processes that started the task.
func (p *play) workersOf(name string) int {
	workers := map[int]bool{}
	for _, e := range p.starts {
		if e.Name == name {
			workers[e.Worker] = true
		}
	}
	return len(workers)
}

func (p *play) done() bool {
	for i := range script {
		if p.finished[script[i].Name] < script[i].tasks() {
			return false
		}
	}
	return true
}

// close ends what is still running and leaves nothing behind.
func (p *play) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopLimit)
	defer cancel()
	var errs []error
	if len(p.processes) > 0 && !p.done() {
		_ = p.running().stop() // the demo has failed already, with a reason
	}
	if p.db != nil {
		errs = append(errs, p.deleteSchedules(ctx), p.deleteRows(ctx), p.db.Close())
	}
	return errors.Join(append(errs, p.operator.Stop(ctx))...)
}

func (p *play) deleteRows(ctx context.Context) error {
	for i := range script {
		for _, id := range p.idsOf(&script[i]) {
			if _, err := p.db.ExecContext(ctx, "DELETE FROM delay_task_message WHERE id = ?", id); err != nil {
				return fmt.Errorf("delete the demo's task %s: %w", script[i].Name, err)
			}
		}
	}
	return nil
}

func (p *play) deleteSchedules(ctx context.Context) error {
	for i := range script {
		if _, saved := p.ids[script[i].Name]; saved && script[i].every != 0 {
			if err := p.operator.DeleteSchedule(ctx, p.prefix+script[i].Name); err != nil {
				return err
			}
		}
	}
	return nil
}

// idsOf returns the tasks of a scene: of a schedule those that have started.
func (p *play) idsOf(s *scene) (ids []int64) {
	if s.every == 0 {
		return []int64{p.ids[s.Name]}
	}
	for _, e := range p.starts {
		if e.Name == s.Name && !slices.Contains(ids, e.ID) {
			ids = append(ids, e.ID)
		}
	}
	return ids
}

func sceneOf(name string) *scene {
	for i := range script {
		if script[i].Name == name {
			return &script[i]
		}
	}
	return nil
}

// operate does, while the service runs, what others do: a program with plain SQL, a caller that saves twice, an
// operator.
func (p *play) operate(ctx context.Context) error {
	for i := range script {
		scene := &script[i]
		switch {
		case scene.plainSQL:
			if err := p.insert(ctx, scene); err != nil {
				return err
			}
		case scene.cancels:
			if _, err := p.operator.Cancel(ctx, p.ref(scene), delaytask.OnlyPending()); err != nil {
				return err
			}
			p.narrator.cancelled(scene)
		case scene.moved != 0:
			if _, err := p.operator.Reschedule(ctx, p.ref(scene), scene.moved); err != nil {
				return err
			}
			p.narrator.moved(scene)
		}
	}
	return p.saveAgain(ctx, sceneOf("order-1004"))
}

func (p *play) ref(s *scene) delaytask.Ref { return delaytask.ID(p.ids[s.Name]) }

const plainInsert = "INSERT INTO delay_task_message (tag, message_body, delay_time) VALUES (?, ?, ?)"

func (p *play) insert(ctx context.Context, s *scene) error {
	result, err := p.db.ExecContext(ctx, plainInsert, p.prefix+s.Tag, fmt.Sprintf(`{"name":%q}`, s.Name),
		s.Delay.Milliseconds())
	if err != nil {
		return fmt.Errorf("insert a task with plain SQL: %w", err)
	}
	if p.ids[s.Name], err = result.LastInsertId(); err != nil {
		return fmt.Errorf("learn the id of a task: %w", err)
	}
	p.narrator.inserted(s)
	return nil
}

func (p *play) saveAgain(ctx context.Context, s *scene) error {
	_, err := p.operator.SaveDelayTask(ctx, p.prefix+s.Tag, "{}", s.Delay, delaytask.WithKey(s.Name))
	switch {
	case err == nil:
		return fmt.Errorf("a second task with the key %s was stored", s.Name)
	case !errors.Is(err, delaytask.ErrDuplicate):
		return err
	}
	p.refused = true
	p.narrator.duplicate(s)
	return nil
}
