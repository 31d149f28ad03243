// Package operate is what people do and see through the HTTP service, the dashboard and the command: who may, what is
// checked before, what the audit log has of it, and which secrets are masked. A face reads the request, calls one
// method of [Operator] or [View], and words the answer.
//
// The audit log and the bulk changes themselves lie below, in packages audit and bulk, because the scheduler reads the
// log, and ends the bulk changes when it stops.
package operate

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/report"
)

// By is who asks, by which face.
type By struct {
	access.Caller
	Via audit.Via
}

// Config is what an [Operator] is made of.
type Config struct {
	Core   *core.Core // nil: for acts on access tokens alone
	Tokens Tokens     // for acts on access tokens
	Audit  *audit.Log // nil: nothing is recorded
	// Check returns why a task of the tag cannot have the body. Nil: there are no rules besides the rules of a save.
	Check    func(tag string, body []byte) error
	Log      *slog.Logger     // has bulk changes that fail
	Redactor *redact.Redactor // masks secrets; nil: they are shown
	// Explain returns why a task has not run, where the scheduler does not know it, or no Reason. It may be nil.
	Explain func(context.Context, *delaytask.TaskRow) (report.Explanation, error)
	// FindIn bounds what is read before an act. 0 means as long as the context of the call.
	FindIn time.Duration
}

// Operator does what people ask for. It is safe for concurrent use.
type Operator struct {
	Config
	store store.Store
}

// New returns an Operator.
func New(c Config) *Operator {
	o := &Operator{Config: c}
	if c.Core != nil {
		o.store = c.Core.Store()
	}
	return o
}

// target is what an act is about.
type target struct {
	name   string // as the audit log has it
	tag    string
	tags   []string // that rights are needed for; nil: tag
	detail string   // besides the detail of the act
	task   int64    // its id; 0: the act is not about one task
	hidden error    // for a caller that may not know of it
}

// act is one change. do uses the fields in their order.
type act struct {
	action audit.Action
	needs  func(tag string) []access.Verb
	tag    string // that the caller has named; "": find tells it
	find   func(context.Context) (target, error)
	check  func(target) error // as a save would be checked; nil: nothing
	detail string
	do     func(context.Context, target) (tasks int64, err error)
}

// do makes a change: once the caller may, and with an entry in the audit log.
//
// It returns [access.ErrForbidden], [delaytask.ErrNotRecorded], the error of find, for a target that the caller may not
// know of its hidden error, and the error of the change.
func (o *Operator) do(ctx context.Context, by By, a act) error {
	t, err := o.admit(ctx, by, a)
	if err != nil {
		return err
	}
	return recorded(by, o.Audit.Do(ctx, by.act(a.action, t, a.detail), func(ctx context.Context) (int64, error) {
		return a.do(ctx, t)
	}))
}

// admit finds the target, once the caller may. A target of another tag answers like one that is not there. So rights
// are asked for before anything is read, too: what their lack answers must not tell what there is.
func (o *Operator) admit(ctx context.Context, by By, a act) (t target, err error) {
	for _, verb := range a.needs(a.tag) {
		if err := by.Allow(verb, a.tag); err != nil {
			return t, err
		}
	}
	if t, err = o.found(ctx, a.find); err != nil {
		return t, err
	}
	if err := by.lacks(a.needs(t.tag), t); err != nil {
		return t, err
	}
	if a.check != nil {
		err = a.check(t)
	}
	return t, err
}

// lacks returns an error when the caller lacks one of the rights to a target. Without the first it may not know of the
// target.
func (by By) lacks(needs []access.Verb, t target) error {
	tags := t.tags
	if tags == nil {
		tags = []string{t.tag}
	}
	for i, verb := range needs {
		for _, tag := range tags {
			switch {
			case by.May(verb, tag):
			case i == 0 && t.hidden != nil:
				return t.hidden
			default:
				return access.Forbidden(verb, tag)
			}
		}
	}
	return nil
}

func (o *Operator) found(ctx context.Context, find func(context.Context) (target, error)) (target, error) {
	if o.FindIn > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.FindIn)
		defer cancel()
	}
	return find(ctx)
}

// act is what the audit log has of an act before it.
func (by By) act(action audit.Action, t target, detail string) audit.Act {
	return audit.Act{Who: by.Name(), Via: by.Via, Action: action, Target: t.name, Tag: t.tag, Detail: t.detail + detail}
}

// recorded leaves out what the database says of an entry that could not be stored: that may name hosts and users. Who
// runs the command knows them.
func recorded(by By, err error) error {
	if by.Via != audit.Command && errors.Is(err, delaytask.ErrNotRecorded) {
		return delaytask.ErrNotRecorded
	}
	return err
}
