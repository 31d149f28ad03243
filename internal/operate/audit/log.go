package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/report"
)

// Level says which acts are recorded.
type Level string

// The levels. The empty one is All.
const (
	All     Level = "all"
	Operate Level = "operate" // all but changes of single tasks
	Off     Level = "off"
)

// ErrStopped is returned by an act that was stopped before its end. An error that wraps it says by what other than a
// person.
var ErrStopped = errors.New("stopped")

// ErrUnchanged is returned by an act that has found all as it was to become. Its caller gets nil.
var ErrUnchanged = errors.New("unchanged")

// Config is what a [Log] is made of.
type Config struct {
	Store store.Auditor
	Level Level
	Log   *slog.Logger
}

// Log records acts. It is safe for concurrent use. A nil Log records nothing.
type Log struct {
	Config
	refused limiter // of lines about acts that are not recorded, and so not made
	failed  limiter // of lines about outcomes that are not stored
}

// New returns a log.
func New(c Config) *Log { return &Log{Config: c} }

const (
	// writeTime bounds each of the two statements.
	writeTime = 5 * time.Second
	// lineEvery is how often a failure is logged: in an outage every act has one.
	lineEvery = 5 * time.Second
)

// Do records the act, does it, records what became of it, and returns the error of do. do returns how many tasks it
// has changed, also beside an error. When the outcome cannot be stored, that is logged.
//
// The context of do has the actor, also where nothing is recorded.
//
// It returns [delaytask.ErrNotRecorded], and does nothing, when the act cannot be recorded.
func (l *Log) Do(ctx context.Context, act Act, do func(context.Context) (tasks int64, err error)) error {
	e, err := l.Begin(ctx, act)
	if err != nil {
		return err
	}
	end := row.AuditEnd{Outcome: report.AuditUnknown, Error: "it panicked"}
	defer func() { e.end(ctx, end) }()
	tasks, err := do(row.WithActor(ctx, act.who()))
	if end = endOf(tasks, err); end.Outcome == report.AuditUnchanged {
		return nil
	}
	return err
}

// Entry is the entry of an act under way. It is nil for an act that is not recorded.
type Entry struct {
	ID  int64
	log *Log
}

// Records reports whether acts of this kind have entries.
func (l *Log) Records(a Action) bool {
	return l != nil && l.Level != Off && (l.Level != Operate || !a.Single())
}

// Begin records an act that goes on after the call, and returns its entry. It is nil where acts of this kind are not
// recorded. Begin returns errors as [Log.Do] does.
func (l *Log) Begin(ctx context.Context, act Act) (*Entry, error) {
	if !l.Records(act.Action) {
		return nil, nil
	}
	call, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	id, err := l.Store.BeginAudit(call, act.entry())
	switch {
	case err == nil:
		return &Entry{id, l}, nil
	case errors.Is(ctx.Err(), context.Canceled): // the caller has gone
		return nil, fmt.Errorf("record the change: %w", ctx.Err())
	default:
		if act.Via != Command && l.refused.allow() { // the command prints the error
			l.Log.Error("a change was refused, because it could not be recorded", "action", act.Action, "err", err)
		}
		return nil, fmt.Errorf("%w: %w", delaytask.ErrNotRecorded, err)
	}
}

// End records what became of the act: how many tasks it has changed, and its error.
func (e *Entry) End(ctx context.Context, tasks int64, err error) { e.end(ctx, endOf(tasks, err)) }

func endOf(tasks int64, err error) row.AuditEnd {
	end := row.AuditEnd{Tasks: tasks}
	end.Outcome, end.Error = outcomeOf(err)
	if end.Outcome == report.AuditRefused && tasks > 0 {
		end.Outcome = report.AuditFailed // a part was done, and the rest was not
	}
	return end
}

// end outlives the request: what was done stays done when its caller has gone.
func (e *Entry) end(ctx context.Context, end row.AuditEnd) {
	if e == nil {
		return
	}
	call, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTime)
	defer cancel()
	err := e.log.Store.EndAudit(call, e.ID, end)
	if err != nil && e.log.failed.allow() {
		e.log.Log.Error("the outcome of a change is not in the audit log", "entry", e.ID,
			"outcome", string(end.Outcome), "err", err)
	}
}

// outcomeOf tells the outcome by the error. Of an error of the database it leaves out what the database says: that may
// name hosts and users.
func outcomeOf(err error) (report.AuditOutcome, string) {
	if err == nil {
		return report.AuditDone, ""
	}
	if errors.Is(err, ErrUnchanged) {
		return report.AuditUnchanged, ""
	}
	if err == ErrStopped { //nolint:errorlint // what wraps it says more
		return report.AuditStopped, ""
	}
	text := cut(err.Error(), row.AuditErrorBytes)
	e, ofDatabase := errors.AsType[*row.Error](err)
	if ofDatabase {
		text = cut(fmt.Sprintf("%s: the database answered with an error (%s) %s", e.Op, e.Class, e.Hint),
			row.AuditErrorBytes)
	}
	switch {
	case errors.Is(err, ErrStopped):
		return report.AuditStopped, text
	case errors.Is(err, delaytask.ErrOutcomeUnknown), ofDatabase && e.Class == row.ClassUnknown,
		!ofDatabase && row.Ended(err):
		return report.AuditUnknown, text
	case ofDatabase && e.Class != row.ClassCaller && e.Class != row.ClassDuplicate:
		return report.AuditFailed, text
	default:
		return report.AuditRefused, text
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
