package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
)

// Level says which acts are recorded.
type Level string

// The levels. The empty one is All.
const (
	All     Level = "all"
	Operate Level = "operate" // all but changes of single tasks
	Off     Level = "off"
)

// Config is what a [Log] is made of.
type Config struct {
	Store store.Auditor
	Via   Via
	Level Level
	Log   *slog.Logger
}

// Log records acts. It is safe for concurrent use. A nil Log records nothing.
type Log struct {
	Config
	without atomic.Bool // it was logged that there is no audit log
	failed  limiter     // of lines about outcomes that are not stored
}

// New returns a log.
func New(c Config) *Log { return &Log{Config: c} }

const (
	// writeTime bounds each of the two statements.
	writeTime = 5 * time.Second
	// lineEvery is how often a failure is logged: in an outage every act has one.
	lineEvery = 5 * time.Second
)

// Do records the act and does it. A change of a single task that succeeds counts as one task. See [Log.DoAll].
func (l *Log) Do(ctx context.Context, act Act, do func(context.Context) error) error {
	return l.DoAll(ctx, act, func(ctx context.Context) (tasks int64, err error) {
		if err = do(ctx); err == nil && act.Action.Single() {
			tasks = 1
		}
		return tasks, err
	})
}

// DoAll records the act, does it, records what became of it, and returns the error of do. do returns how many tasks it
// has changed, also beside an error. When the outcome cannot be stored, that is logged.
//
// The context of do has the actor, also where nothing is recorded.
//
// It returns [processor.ErrNotRecorded], and does nothing, when the act cannot be recorded. Where the database has no
// table for it, or the account lacks privileges on the table, that is logged once, and the act goes on.
func (l *Log) DoAll(ctx context.Context, act Act, do func(context.Context) (tasks int64, err error)) error {
	acting := row.WithActor(ctx, act.who())
	if l == nil || l.Level == Off || l.Level == Operate && act.Action.Single() {
		_, err := do(acting)
		return err
	}
	id, err := l.begin(ctx, &act)
	if err != nil {
		return err
	}
	end := row.AuditEnd{Outcome: row.AuditUnknown, Error: "it panicked"}
	defer func() {
		if id != 0 {
			l.end(ctx, id, end)
		}
	}()
	end.Tasks, err = do(acting)
	end.Outcome, end.Error = outcomeOf(err)
	if end.Outcome == row.AuditRefused && end.Tasks > 0 {
		end.Outcome = row.AuditFailed // a part was done, and the rest was not, as when someone has stopped it
	}
	return err
}

// begin returns 0 where there is no audit log.
func (l *Log) begin(ctx context.Context, act *Act) (id int64, err error) {
	call, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	id, err = l.Store.BeginAudit(call, act.entry(l.Via))
	switch {
	case err == nil:
		l.without.Store(false)
		return id, nil
	case errors.Is(err, processor.ErrNoAudit):
		if !l.without.Swap(true) {
			l.Log.Warn("changes are not recorded in the audit log", "err", err)
		}
		return 0, nil
	case errors.Is(ctx.Err(), context.Canceled): // the caller has gone
		return 0, fmt.Errorf("record the change: %w", ctx.Err())
	default:
		return 0, fmt.Errorf("%w: %w", processor.ErrNotRecorded, err)
	}
}

// end outlives the request: what was done stays done when its caller has gone.
func (l *Log) end(ctx context.Context, id int64, end row.AuditEnd) {
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	defer cancel()
	err := l.Store.EndAudit(call, id, end)
	if err != nil && l.failed.allow() {
		l.Log.Error("the outcome of a change is not in the audit log", "entry", id, "outcome", string(end.Outcome),
			"err", err)
	}
}

// outcomeOf tells the outcome by the error. Of an error of the database it leaves out what the database says: that may
// name hosts and users.
func outcomeOf(err error) (row.AuditOutcome, string) {
	if err == nil {
		return row.AuditDone, ""
	}
	text := cut(err.Error(), row.AuditErrorBytes)
	e, ofDatabase := errors.AsType[*row.Error](err)
	if ofDatabase {
		text = cut(fmt.Sprintf("%s: the database answered with an error (%s) %s", e.Op, e.Class, e.Hint),
			row.AuditErrorBytes)
	}
	switch {
	case errors.Is(err, processor.ErrOutcomeUnknown), ofDatabase && e.Class == row.ClassUnknown,
		!ofDatabase && row.Ended(err):
		return row.AuditUnknown, text
	case ofDatabase && e.Class != row.ClassCaller && e.Class != row.ClassDuplicate:
		return row.AuditFailed, text
	default:
		return row.AuditRefused, text
	}
}

// limiter lets a line pass now and then.
type limiter struct {
	mu   sync.Mutex
	next time.Time
}

func (l *limiter) allow() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Before(l.next) {
		return false
	}
	l.next = now.Add(lineEvery)
	return true
}
