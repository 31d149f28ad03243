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
func work(ctx context.Context, s *delaytask.Scheduler, j *nodeJournal, o Order, n *child.Narrator) error {
	w := &worker{journal: j}
	for _, tag := range o.Tags {
		if err := s.Register(tag, processor.Func(w.process)); err != nil {
			return err
		}
	}
	j.write(journal.Event{Kind: journal.NodeStart, Detail: strings.Join(o.Tags, " ")})
	if err := s.Start(ctx); err != nil {
		return errors.Join(err, s.Stop(context.WithoutCancel(ctx)))
	}
	tellState(ctx, n)
	j.write(journal.Event{Kind: journal.NodeStop})
	err := s.Stop(context.WithoutCancel(ctx))
	// With a deadline exceeded a result could not be stored.
	if errors.Is(err, delaytask.ErrGraceEnded) && !errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	j.write(journal.Event{Kind: journal.NodeStopped, Detail: text(err)})
	return err
}

type worker struct {
	journal  *nodeJournal
	crashing sync.Mutex // held for ever by the crash of this process
}

// process notes its start before anything else, and what it returns before it returns.
func (w *worker) process(ctx context.Context, task *processor.Task) error {
	e := journal.Event{
		At: time.Now(), Kind: journal.RunStart, Op: w.journal.op(), ID: task.ID, Tag: task.Tag, Key: task.Key,
		Body: string(task.Body), Version: task.Version, Attempt: task.Attempt, Expected: task.Expected, Due: task.Due,
	}
	w.journal.write(e)
	asked := parse(e.Body)
	first := task.Version == 1 // no process has lost this task
	switch {
	case asked.verb == poison:
		os.Exit(exitPoison)
	case asked.verb == crashAtStart && first:
		w.crash(KillAfterClaim, task)
	}
	err := asked.do(ctx, task)
	end := journal.Event{
		Kind: journal.RunEnd, Op: e.Op, ID: e.ID, Version: e.Version, Error: returned(err), Detail: text(err),
	}
	if asked.verb == explode && task.Attempt == 1 {
		end.Error = journal.Panicked
	}
	if cause := context.Cause(ctx); ended(cause) != journal.OK {
		w.journal.write(journal.Event{
			Kind: journal.RunTold, Op: e.Op, ID: e.ID, Version: e.Version, Error: ended(cause), Detail: text(cause),
		})
	}
	w.journal.write(end)
	switch {
	case end.Error == journal.Panicked:
		panic("as the task's body says")
	case asked.verb == crashBeforeSettle && first:
		w.crash(KillBeforeSettle, task)
	case asked.verb == crashAfterReturn && first:
		time.AfterFunc(asked.span, func() { w.crash(KillAfterReturn, task) })
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

// crash ends this process as a power cut would.
func (w *worker) crash(point string, task *processor.Task) {
	w.crashing.Lock()
	w.journal.write(journal.Event{
		Kind: journal.FaultBegin, Op: w.journal.op(), Detail: point, ID: task.ID, Version: task.Version,
	})
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}
