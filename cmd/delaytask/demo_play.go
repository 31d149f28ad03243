package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/scheduler"
)

// play performs the script: it starts the service, kills it, starts it again, and does what operators and other
// programs do beside it. What it prints comes from the events of the service and from the rows.
type play struct {
	narrator
	dsn      string
	operator *scheduler.Scheduler

	service *child.Process[event] // nil before the first

	ids       map[string][]int64 // of the tasks of a scene, by its name
	starts    map[string][]event
	successes int // attempts that have succeeded
}

func (p *play) run(ctx context.Context) error {
	if err := p.start(ctx, true); err != nil {
		return err
	}
	if err := p.follow(ctx, func(e event) bool { return e.Kind == eventReady }); err != nil {
		return err
	}
	if err := p.operate(ctx); err != nil {
		return err
	}
	p.chapter("2. The tasks run. Times are local (%s), read by the service as each processor begins.",
		time.Now().Format("UTC-07:00"))
	p.say()
	p.say(words(bold, clocks+runsAfter, "DUE", "STARTED", "LATE", "TAG", "TASK"))
	err := p.follow(ctx, func(e event) bool { return e.Kind == eventStarted && sceneOf(e.Name).killed })
	if err == nil {
		err = p.crash(ctx)
	}
	if err != nil {
		return err
	}
	return p.follow(ctx, func(event) bool { return p.successes == successes })
}

// start starts the service, which saves the tasks or only runs them.
func (p *play) start(ctx context.Context, save bool) (err error) {
	// When the demo is interrupted, the service stops in order as its input is closed.
	p.service, err = child.Start[event](context.WithoutCancel(ctx), order{p.dsn, save}, "demo", "worker")
	if err != nil {
		return fmt.Errorf("start the service: %w", err)
	}
	if save {
		p.chapter("1. A service starts (process %d) and saves tasks. Each line is a committed row.", p.service.Pid())
	} else {
		p.say(words(plain, "   The service is started again (process %d). It knows nothing but what the table says.",
			p.service.Pid()))
	}
	p.say()
	return nil
}

// stop lets the service finish what it does.
func (p *play) stop() error {
	if p.service == nil {
		return nil
	}
	return p.service.Stop()
}

// crash kills the service without a warning and starts it again.
func (p *play) crash(ctx context.Context) error {
	p.chapter("3. The service is killed (SIGKILL, process %d) in the middle of report.build.", p.service.Pid())
	p.say(words(plain, "   Its lease is %s long and is no longer renewed; then the task belongs to whoever is alive.",
		span(reportLease)))
	if err := p.service.Signal(os.Kill); err != nil {
		return err
	}
	if err := p.service.Wait(p.take); err == nil {
		return errors.New("the service ended before it was killed")
	}
	return p.start(ctx, false)
}

// follow tells of the events until one is the last. A service that ends by itself is a failure.
func (p *play) follow(ctx context.Context, last func(event) bool) error {
	defer context.AfterFunc(ctx, func() { p.service.End() })() // it stops, and so ends its events
	done := false
	p.service.Listen(demoLimit, func(e event) bool {
		p.take(e)
		done = last(e)
		return !done
	})
	if done {
		return nil
	}
	return cmp.Or(context.Cause(ctx), errors.New("the service ended by itself"))
}

func (p *play) take(e event) {
	e.Worker = p.service.Pid()
	if e.ID != 0 && !slices.Contains(p.ids[e.Name], e.ID) {
		p.ids[e.Name] = append(p.ids[e.Name], e.ID)
	}
	switch s := sceneOf(e.Name); {
	case e.Kind == eventSaved && s.every != 0:
		p.done("saved", plain, s, "a schedule: every %s, %d times", span(s.every), len(s.notes))
	case e.Kind == eventSaved:
		p.done("saved", plain, s, "due in %s", span(s.Delay))
	case e.Kind == eventStarted:
		p.starts[e.Name] = append(p.starts[e.Name], e)
		p.started(e, len(p.starts[e.Name]))
	case e.Kind == eventEnded:
		if e.Error == "" {
			p.successes++
		}
		p.endedTask(e)
	}
}

// operate does, while the service runs, what others do: a program with plain SQL, a caller that saves twice, an
// operator.
func (p *play) operate(ctx context.Context) (err error) {
	for i := range script {
		s := &script[i]
		switch {
		case s.plainSQL:
			if err = p.insert(ctx, s); err == nil {
				p.done("inserted", plain, s, "due in %s, by another program with plain SQL", span(s.Delay))
			}
		case s.cancels:
			if _, err = p.operator.Cancel(ctx, delaytask.ID(p.ids[s.Name][0]), delaytask.OnlyPending()); err == nil {
				p.done("cancelled", yellow, s, "it will not start")
			}
		case s.moved != 0:
			if _, err = p.operator.Reschedule(ctx, delaytask.ID(p.ids[s.Name][0]), s.moved); err == nil {
				p.done("rescheduled", yellow, s, "now due in %s", span(s.moved))
			}
		}
		if err != nil {
			return err
		}
	}
	s := &script[len(script)-1]
	_, err = p.operator.SaveDelayTask(ctx, s.Tag, "{}", s.Delay, delaytask.WithKey(s.Name))
	if !errors.Is(err, delaytask.ErrDuplicate) {
		return errors.Join(fmt.Errorf("a second task with the key %s was not refused", s.Name), err)
	}
	p.done("refused", yellow, s, "saved a second time, and its key is taken")
	return nil
}

func (p *play) insert(ctx context.Context, s *scene) error {
	db, _, err := sqlstore.Connect(ctx, p.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	const plainInsert = "INSERT INTO delay_task_message (tag, message_body, delay_time) VALUES (?, ?, ?)"
	_, err = db.ExecContext(ctx, plainInsert, s.Tag, fmt.Sprintf(`{"name":%q}`, s.Name), s.Delay.Milliseconds())
	if err != nil {
		return fmt.Errorf("insert a task with plain SQL: %w", err)
	}
	return nil
}

// demoLimit is far above what the demo takes: beyond it the demo has failed.
const demoLimit = 40 * time.Second
