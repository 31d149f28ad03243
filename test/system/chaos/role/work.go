package role

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

func work(
	ctx context.Context, s *scheduler.Scheduler, j *nodeJournal, heard *listener, o Order, n *child.Narrator,
) error {
	w := &worker{journal: j, heard: heard}
	for _, tag := range o.Tags {
		if err := s.Register(tag, processor.Func(w.process)); err != nil {
			return err
		}
	}
	if err := s.Register(TickTag, processor.Func(tick)); err != nil {
		return err
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

// tick is the processor of schedules: most of their runs are short, some take longer than the period, some fail.
func tick(ctx context.Context, task *delaytask.Task) error {
	n := rand.IntN(100)
	took := time.Duration(n) * time.Millisecond
	if n >= 95 {
		took = 4 * time.Second
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		return ctx.Err()
	}
	if n < 10 && task.Attempt == 1 {
		return errors.New("the first attempt of some fails")
	}
	return nil
}

type worker struct {
	journal  *nodeJournal
	heard    *listener
	crashing sync.Mutex // held for ever by the crash of this process
}

// process notes its start before anything else, and what it returns before it returns.
func (w *worker) process(ctx context.Context, task *delaytask.Task) error {
	e := journal.Event{
		At: time.Now(), Kind: journal.RunStart, Op: w.journal.op(), ID: task.ID, Tag: task.Tag, Key: task.Key,
		Body: string(task.Body), Version: task.Version, Attempt: task.Attempt, Expected: task.Expected, Due: task.Due,
	}
	if doubt := w.heard.doubt(); doubt > 0 {
		e.Clock = e.At.Add(doubt)
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

// The points where a worker ends itself.
const (
	KillAfterClaim   = "kill after claim"
	KillBeforeSettle = "kill before settle"
	KillAfterReturn  = "kill after return"
)

const exitPoison = 7

// crash ends this process as a power cut would.
func (w *worker) crash(point string, task *delaytask.Task) {
	w.crashing.Lock()
	w.journal.write(journal.Event{
		Kind: journal.FaultBegin, Op: w.journal.op(), Detail: point, ID: task.ID, Version: task.Version,
	})
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

// operation is what a task's body tells its processor to do: "UNIQUE VERB MILLISECONDS". Its texts must not change:
// older programs read them too.
type operation struct {
	verb verb
	span time.Duration
}

type verb string

const (
	succeed           verb = "succeed"
	slow              verb = "slow"      // succeeds after the span, if its context lets it
	ignore            verb = "ignore"    // the same, and ignores its context
	failOnce          verb = "fail-once" // at the first attempt
	fail              verb = "fail"      // always
	permanent         verb = "permanent" // fails, not to be tried again
	explode           verb = "panic"     // at the first attempt
	snooze            verb = "snooze"    // at its first run
	crashAtStart      verb = "die-at-start"
	crashBeforeSettle verb = "die-before-settle"
	crashAfterReturn  verb = "die-after-return"
	poison            verb = "poison" // ends its process, always
)

// share is how many of a thousand tasks do it.
type share struct {
	verb  verb
	tag   int // of Tags
	parts int
	most  time.Duration // of the span
}

// shares add up to 1000 with succeed. A task that was executing in two processes that crashed is on probation, so a run
// with more such tasks takes minutes to drain.
var shares = []share{
	{slow, 1, 120, 1500 * time.Millisecond}, // at a kill, a few of them are executing in each process
	{ignore, 1, 5, 6 * time.Second},         // longer than a lease
	{failOnce, 2, 30, 0},
	{fail, 2, 4, 0},
	{permanent, 2, 6, 0},
	{explode, 2, 20, 0},
	{snooze, 2, 10, 300 * time.Millisecond},
}

// crashes are what a saver asks for at a pace of its own: each ends a process.
var crashes = []share{
	{verb: crashAtStart, tag: deadlyTag},
	{verb: crashBeforeSettle, tag: deadlyTag},
	{verb: crashAfterReturn, tag: deadlyTag, most: 40 * time.Millisecond},
}

func drawn(r *rand.Rand) (tag string, d operation) {
	n := r.IntN(1000)
	for _, s := range shares {
		if n -= s.parts; n < 0 {
			return s.with(r)
		}
	}
	return Tags[0], operation{verb: succeed}
}

// easy draws the operation of a task that is saved among many: nine of ten just succeed.
func easy(r *rand.Rand) (tag string, d operation) {
	if r.IntN(10) > 0 {
		return Tags[0], operation{verb: succeed}
	}
	return drawn(r)
}

func (s share) with(r *rand.Rand) (tag string, d operation) {
	d = operation{verb: s.verb}
	if s.most > 0 {
		d.span = time.Duration(1+r.Int64N(s.most.Milliseconds())) * time.Millisecond
	}
	return Tags[s.tag], d
}

// body is a text that no other task of the run has.
func (d operation) body(unique string) string {
	return fmt.Sprintf("%s %s %d", unique, d.verb, d.span.Milliseconds())
}

// parse reads a body. Any other text succeeds.
func parse(body string) operation {
	fields := strings.Fields(body)
	if len(fields) != 3 {
		return operation{verb: succeed}
	}
	ms, err := strconv.Atoi(fields[2])
	if err != nil {
		return operation{verb: succeed}
	}
	return operation{verb(fields[1]), time.Duration(ms) * time.Millisecond}
}

var errAsked = errors.New("as the task's body says")

func (d operation) do(ctx context.Context, task *delaytask.Task) error {
	switch d.verb {
	case slow:
		return lateness.Pass(ctx, d.span)
	case ignore:
		return lateness.Pass(context.WithoutCancel(ctx), d.span)
	case failOnce:
		if task.Attempt == 1 {
			return errAsked
		}
	case fail:
		return errAsked
	case permanent:
		return processor.Permanent(errAsked)
	case snooze:
		if task.Version == 1 {
			return processor.Snooze(d.span)
		}
	}
	return nil
}
