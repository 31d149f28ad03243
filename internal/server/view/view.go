// Package view converts values of the library into the JSON of package wire, for the HTTP API and for --json of the
// command.
package view

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

// latePolicies are the names of the policies, in JSON and on the command line.
var latePolicies = map[delaytask.LatePolicy]string{
	delaytask.LateRun:  "run",
	delaytask.LateSkip: "skip",
	delaytask.LateFail: "fail",
}

// LatePolicy names a policy.
func LatePolicy(p delaytask.LatePolicy) string {
	if name, known := latePolicies[p]; known {
		return name
	}
	return "unknown"
}

// ParseLatePolicy returns the policy of a name, and whether there is one.
func ParseLatePolicy(name string) (delaytask.LatePolicy, bool) {
	for policy, known := range latePolicies {
		if known == name {
			return policy, true
		}
	}
	return 0, false
}

// Task is a task in JSON.
func Task(t *delaytask.TaskRow) wire.Task {
	v := wire.Task{
		ID: wire.ID(t.ID), Tag: t.Tag, Key: t.Key, App: t.App(), Status: string(t.Status), Version: t.Version,
		Attempt: t.Attempt, MaxAttempts: t.MaxAttempts, CrashCount: t.CrashCount, Priority: t.Priority,
		DelayMS: t.Delay.Milliseconds(), TTRMS: t.TTR.Milliseconds(), MaxLateMS: t.MaxLate.Milliseconds(),
		Expected: wire.Time(t.Expected), Due: wire.Time(t.Due), Started: wire.Time(t.Started),
		Finished: wire.Time(t.Finished),
		Created:  wire.Time(t.Created), Updated: wire.Time(t.Updated), Schedule: scheduledRun(t.Schedule),
		Executor: t.Executor, Headers: Headers(t.Headers), Body: wire.BodyOf(t.Body), Error: t.ErrorStack,
		Broken: t.Broken,
	}
	if t.MaxLate > 0 {
		v.LatePolicy = LatePolicy(t.LatePolicy)
	}
	if !t.Started.IsZero() {
		late := Milliseconds(t.Lateness())
		v.LatenessMS, v.LateReason = &late, string(t.Late)
	}
	if t.IPAddress.IsValid() {
		v.IPAddress = t.IPAddress.String()
	}
	for _, a := range t.Errors {
		v.FailedAttempts = append(v.FailedAttempts, wire.Attempt{
			N: a.N, Due: wire.Time(a.Due), Started: wire.Time(a.Started), Finished: wire.Time(a.Finished),
			Executor: a.Executor, Error: a.Error,
		})
	}
	return v
}

// Tasks is a list of tasks in JSON: an empty one is [].
func Tasks(tasks []delaytask.TaskRow) []wire.Task {
	views := make([]wire.Task, len(tasks))
	for i := range tasks {
		views[i] = Task(&tasks[i])
	}
	return views
}

// Headers leaves out those that have a field of their own.
func Headers(stored map[string]string) map[string]string {
	if _, reserved := stored[delaytask.AppHeader]; !reserved {
		return stored
	}
	shown := maps.Clone(stored)
	delete(shown, delaytask.AppHeader)
	return shown
}

// Popped is a task of a pop in JSON.
func Popped(p *delaytask.Popped) wire.Popped {
	return wire.Popped{
		ID: wire.ID(p.ID), Token: p.Token().String(), Tag: p.Tag, Key: p.Key, App: p.App(), Attempt: p.Attempt,
		Priority: p.Priority,
		Expected: wire.Time(p.Expected), Due: wire.Time(p.Due), Headers: Headers(p.Headers), Body: wire.BodyOf(p.Body),
		Schedule: scheduledRun(p.Schedule),
	}
}

// Milliseconds is a duration as JSON has it, to the microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Nodes lists the processes that share the database.
func Nodes(nodes []report.Node) []wire.Node {
	views := make([]wire.Node, len(nodes))
	for i, n := range nodes {
		views[i] = wire.Node{
			Number: n.Number, Name: n.Name, PID: n.PID, Address: n.Address, Version: n.Version, State: nodeState(n),
			Heartbeat: wire.Time(n.Heartbeat), Tags: append([]string{}, n.Tags...),
			Shares: make([]wire.Share, len(n.Shares)), Wake: n.Wake, UnreachableFrom: n.UnreachableFrom,
		}
		for k, share := range n.Shares {
			views[i].Shares[k] = wire.Share(share)
		}
	}
	return views
}

func nodeState(n report.Node) string {
	switch {
	case !n.Alive:
		return "silent"
	case n.Leaving:
		return "leaving"
	default:
		return "alive"
	}
}

// Stats lists the statistics of every tag.
func Stats(stats []report.TagStats) []wire.TagStats {
	views := make([]wire.TagStats, len(stats))
	for i, s := range stats {
		counts := make(map[string]int64, len(s.Counts))
		for status, n := range s.Counts {
			counts[string(status)] = n
		}
		var capped []string
		for _, status := range s.Capped {
			capped = append(capped, string(status))
		}
		views[i] = wire.TagStats{
			Tag: s.Tag, Counts: counts, Capped: capped, OldestPending: wire.Time(s.OldestPending),
			Served: s.Served, Paused: s.Paused, Lateness: Lateness(s.Lateness),
		}
	}
	return views
}

// Failures shows groups of failed tasks.
func Failures(f report.Failures) wire.Failures {
	v := wire.Failures{Groups: make([]wire.FailureGroup, len(f.Groups)), Tasks: f.Tasks, More: f.More}
	for i, g := range f.Groups {
		v.Groups[i] = wire.FailureGroup{
			ID: g.ID, Tag: g.Tag, Error: g.Error, Tasks: g.Tasks, First: wire.Time(g.First), Last: wire.Time(g.Last),
			ExampleID: wire.ID(g.ExampleID), Example: g.Example,
		}
	}
	return v
}

// Lateness is nil where nothing has run.
func Lateness(l report.Lateness) *wire.Lateness {
	if l.Samples == 0 {
		return nil
	}
	return &wire.Lateness{
		Samples: l.Samples,
		P50:     Milliseconds(l.P50), P95: Milliseconds(l.P95), P99: Milliseconds(l.P99), Max: Milliseconds(l.Max),
	}
}

// problems maps each error of the library to JSON and HTTP. The first match counts.
var problems = []struct {
	err    error
	status int
	code   string
}{
	{delaytask.ErrInvalidTag, http.StatusBadRequest, wire.CodeInvalidTag},
	{delaytask.ErrInvalidKey, http.StatusBadRequest, wire.CodeInvalidKey},
	{delaytask.ErrBodyTooLarge, http.StatusRequestEntityTooLarge, wire.CodeBodyTooLarge},
	{delaytask.ErrRedacted, http.StatusBadRequest, wire.CodeRedacted},
	{delaytask.ErrInvalidBody, http.StatusBadRequest, wire.CodeInvalidBody},
	{delaytask.ErrInvalidDelay, http.StatusBadRequest, wire.CodeInvalidDelay},
	{delaytask.ErrDelayTooLong, http.StatusBadRequest, wire.CodeDelayTooLong},
	{delaytask.ErrInvalidTime, http.StatusBadRequest, wire.CodeInvalidTime},
	{delaytask.ErrInvalidID, http.StatusBadRequest, wire.CodeInvalidID},
	{delaytask.ErrInvalidTTR, http.StatusBadRequest, wire.CodeInvalidTTR},
	{delaytask.ErrInvalidMaxAttempts, http.StatusBadRequest, wire.CodeInvalidMaxAttempts},
	{delaytask.ErrInvalidPriority, http.StatusBadRequest, wire.CodeInvalidPriority},
	{delaytask.ErrInvalidHeaders, http.StatusBadRequest, wire.CodeInvalidHeaders},
	{delaytask.ErrInvalidToken, http.StatusBadRequest, wire.CodeInvalidToken},
	{delaytask.ErrInvalidCursor, http.StatusBadRequest, wire.CodeInvalidCursor},
	{delaytask.ErrInvalidOption, http.StatusBadRequest, wire.CodeInvalidOption},
	{delaytask.ErrInvalidSpec, http.StatusBadRequest, wire.CodeInvalidSpec},
	{delaytask.ErrInvalidScheduleName, http.StatusBadRequest, wire.CodeInvalidScheduleName},
	{delaytask.ErrInvalidRange, http.StatusBadRequest, wire.CodeInvalidRange},
	{delaytask.ErrScheduleNotFound, http.StatusNotFound, wire.CodeScheduleNotFound},
	{delaytask.ErrScheduleOwned, http.StatusConflict, wire.CodeScheduleOwned},
	{delaytask.ErrScheduleBusy, http.StatusConflict, wire.CodeScheduleBusy},
	{delaytask.ErrScheduleState, http.StatusConflict, wire.CodeScheduleState},
	{delaytask.ErrNotRecorded, http.StatusServiceUnavailable, wire.CodeNotRecorded},
	{bulk.ErrUnknown, http.StatusNotFound, wire.CodeBulkNotFound},
	{bulk.ErrUntold, http.StatusConflict, wire.CodeBulkUntold},
	{bulk.ErrTooMany, http.StatusTooManyRequests, wire.CodeTooManyBulkChanges},
	{bulk.ErrClosed, http.StatusServiceUnavailable, wire.CodeStopping},
	{operate.ErrAction, http.StatusBadRequest, wire.CodeInvalidOption},
	{access.ErrForbidden, http.StatusForbidden, wire.CodeForbidden},
	{operate.ErrSomeTags, http.StatusForbidden, wire.CodeForbidden},
	{delaytask.ErrBatchTooLarge, http.StatusBadRequest, wire.CodeBatchTooLarge},
	{delaytask.ErrOutcomeUnknown, http.StatusServiceUnavailable, wire.CodeOutcomeUnknown},
	{delaytask.ErrDuplicate, http.StatusConflict, wire.CodeDuplicate},
	{delaytask.ErrConflict, http.StatusConflict, wire.CodeConflict},
	{delaytask.ErrLeaseLost, http.StatusConflict, wire.CodeLeaseLost},
	{delaytask.ErrNotFound, http.StatusNotFound, wire.CodeNotFound},
	{delaytask.ErrNotPending, http.StatusConflict, wire.CodeNotPending},
	{delaytask.ErrFinished, http.StatusConflict, wire.CodeFinished},
	{delaytask.ErrNotFailed, http.StatusConflict, wire.CodeNotFailed},
	{delaytask.ErrContended, http.StatusConflict, wire.CodeContended},
	{delaytask.ErrVersionChanged, http.StatusConflict, wire.CodeVersionChanged},
	{delaytask.ErrBroken, http.StatusConflict, wire.CodeBroken},
	{delaytask.ErrChunkRefused, http.StatusConflict, wire.CodeChunkRefused},
	{delaytask.ErrOverloaded, http.StatusServiceUnavailable, wire.CodeOverloaded},
	{delaytask.ErrClosed, http.StatusServiceUnavailable, wire.CodeStopping},
	{delaytask.ErrNotStarted, http.StatusServiceUnavailable, wire.CodeNotReady},
	{scheduler.ErrNotReady, http.StatusServiceUnavailable, wire.CodeNotReady},
	{context.DeadlineExceeded, http.StatusServiceUnavailable, wire.CodeUnavailable},
	{context.Canceled, statusHungUp, wire.CodeUnavailable},
}

// statusHungUp is for the log and the metrics, where it is no failure of the service: the client has gone. It is
// commonly called "client closed request".
const statusHungUp = 499

// Problem is an error of the library in JSON. It reports false for any other: the text of a database's error may name
// hosts and users.
func Problem(err error) (*wire.Problem, bool) {
	for _, known := range problems {
		if !errors.Is(err, known.err) {
			continue
		}
		p := &wire.Problem{
			Title: http.StatusText(known.status), Status: known.status, Code: known.code, Detail: plain(err.Error()),
		}
		if p.Code == wire.CodeUnavailable {
			const inTime = "the database did not answer in time; try again"
			p.Detail = strings.Replace(p.Detail, context.DeadlineExceeded.Error(), inTime, 1)
		}
		if unknown, ok := errors.AsType[*delaytask.OutcomeUnknownError](err); ok {
			p.TaskID = wire.ID(unknown.ID)
		}
		if duplicate, ok := errors.AsType[*delaytask.DuplicateError](err); ok {
			p.TaskID = wire.ID(duplicate.ID)
		}
		if wrong, ok := errors.AsType[*delaytask.SpecError](err); ok {
			p.Errors = []wire.Detail{place(wrong)}
		}
		if busy, ok := errors.AsType[*delaytask.NotPendingError](err); ok && p.TaskID == 0 {
			p.TaskID = wire.ID(busy.ID)
		}
		return p, true
	}
	return nil, false
}

// plain leaves out the name of the package that an error of the library begins with.
func plain(text string) string { return strings.Replace(text, "delaytask: ", "", 1) }
