package role

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/processor"
)

// work runs tasks as their bodies say.
func work(ctx context.Context, s *delaytask.Scheduler, d *diary, o Order, t *child.Narrator) error {
	w := &worker{diary: d}
	for _, tag := range o.Tags {
		if err := s.Register(tag, processor.Func(w.process)); err != nil {
			return err
		}
	}
	d.write(journal.Event{Kind: journal.NodeStart, Detail: strings.Join(o.Tags, " ")})
	if err := s.Start(ctx); err != nil {
		return errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	tellState(ctx, t)
	d.write(journal.Event{Kind: journal.NodeStop})
	err := s.Stop(context.WithoutCancel(ctx))
	if errors.Is(err, delaytask.ErrGraceEnded) && !errors.Is(err, context.DeadlineExceeded) { // else a result could not be stored
		err = nil
	}
	d.write(journal.Event{Kind: journal.NodeStopped, Detail: text(err)})
	return err
}

type worker struct {
	diary *diary
	dying sync.Mutex // held for ever by what has decided to end this process
}

// process notes its start before anything else, and what it returns before it returns.
func (w *worker) process(ctx context.Context, task *processor.Task) error {
	e := journal.Event{
		At: time.Now(), Kind: journal.RunStart, Op: w.diary.op(), ID: task.ID, Tag: task.Tag, Key: task.Key,
		Body: string(task.Body), Version: task.Version, Attempt: task.Attempt, Expected: task.Expected, Due: task.Due,
	}
	w.diary.write(e)
	deed := parse(e.Body)
	first := task.Version == 1 // nobody has lost this task yet
	switch {
	case deed.verb == poison:
		os.Exit(exitPoison)
	case deed.verb == dieAtStart && first:
		w.die(KillAfterClaim, task)
	}
	err := deed.do(ctx, task)
	end := journal.Event{Kind: journal.RunEnd, Op: e.Op, ID: e.ID, Version: e.Version, Error: returned(err), Detail: text(err)}
	if deed.verb == explode && task.Attempt == 1 {
		end.Error = journal.Panicked
	}
	if cause := context.Cause(ctx); cause != nil && told(cause) != journal.OK {
		w.diary.write(journal.Event{Kind: journal.RunTold, Op: e.Op, ID: e.ID, Version: e.Version, Error: told(cause), Detail: text(cause)})
	}
	w.diary.write(end)
	switch {
	case end.Error == journal.Panicked:
		panic("as the task's body says")
	case deed.verb == dieBeforeSettle && first:
		w.die(KillBeforeSettle, task)
	case deed.verb == dieAfterReturn && first:
		time.AfterFunc(deed.span, func() { w.die(KillAfterReturn, task) })
	}
	return err
}

// The points at which a worker ends itself.
const (
	KillAfterClaim   = "kill after claim"
	KillBeforeSettle = "kill before settle"
	KillAfterReturn  = "kill after return"
)

const exitPoison = 7

// die ends this process as a power cut would.
func (w *worker) die(point string, task *processor.Task) {
	w.dying.Lock()
	w.diary.write(journal.Event{Kind: journal.FaultBegin, Op: w.diary.op(), Detail: point, ID: task.ID, Version: task.Version})
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
