package wire

import (
	"encoding/json"
	"net/netip"
	"time"
	"unicode/utf8"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/report"
)

// Task is a task as it is stored.
type Task struct {
	ID  ID     `json:"id" doc:"Its id"`
	Tag string `json:"tag,omitempty" doc:"Routes the task to its processor"`
	Key string `json:"key,omitempty" doc:"The caller's own name for the task; absent when it has none"`
	App string `json:"app,omitempty" doc:"Application: only its receivers are called, and the key is unique in it"`

	Status delaytask.Status `json:"status,omitempty" enum:"pending,executing,completed,failed,cancelled"`

	Version     int64 `json:"version" doc:"Grows by 1 at every transition; with the id the lease token"`
	Attempt     int   `json:"attempt" doc:"Number of the current or last attempt"`
	MaxAttempts int   `json:"max_attempts" doc:"0: no limit"`
	CrashCount  int   `json:"crash_count" doc:"Leases that ended because an executor died"`
	Priority    int   `json:"priority"`

	DelayMS    int64  `json:"delay_ms" doc:"The delay that was asked for"`
	TTRMS      int64  `json:"ttr_ms" doc:"Length of a lease"`
	MaxLateMS  int64  `json:"max_late_ms,omitempty" doc:"0 or absent: no limit"`
	LatePolicy string `json:"late_policy,omitempty" enum:"run,skip,fail"`

	Expected   Time                 `json:"expected,omitzero" doc:"When it was promised to start"`
	Due        Time                 `json:"due,omitzero" doc:"When the next attempt is due, or the lease ends"`
	Started    Time                 `json:"started,omitzero" doc:"When somebody who could run it was first handed it"`
	LatenessMS *float64             `json:"lateness_ms,omitempty" doc:"started - expected; absent until it started"`
	LateReason delaytask.LateReason `json:"late_reason,omitempty"`
	Finished   Time                 `json:"finished,omitzero"`
	Created    Time                 `json:"created,omitzero" doc:"By the database's clock; not in answers to saves"`
	Updated    Time                 `json:"updated,omitzero" doc:"Likewise"`

	Schedule *ScheduledRun `json:"schedule,omitempty" doc:"Of the run of a schedule"`

	Executor  string            `json:"executor,omitempty" doc:"Who claimed it last"`
	IPAddress string            `json:"ip_address,omitempty" doc:"Of the last executor"`
	Headers   map[string]string `json:"headers,omitempty"`
	Body
	Error          string    `json:"error,omitempty" doc:"The last error, with the stack of a panic"`
	FailedAttempts []Attempt `json:"failed_attempts,omitempty" doc:"The last ten without success, oldest first"`
	Broken         string    `json:"broken,omitempty" doc:"Why the row cannot be read"`
	Redacted       bool      `json:"redacted,omitempty" doc:"[delaytask-redacted] hides secrets; raw=true shows them"`
}

// ScheduledRun says which tick of which schedule a task is the run of.
type ScheduledRun struct {
	Name        string          `json:"name" doc:"Of the schedule"`
	Tick        Time            `json:"tick" doc:"The instant that the definition names; the jitter comes on top"`
	Cause       delaytask.Cause `json:"cause"`
	Previous    Time            `json:"previous,omitzero" doc:"The tick before"`
	Next        Time            `json:"next,omitzero" doc:"The tick after"`
	LastSuccess Time            `json:"last_success,omitzero" doc:"Last completed tick when this one was planted"`
	Missed      int             `json:"missed,omitempty" doc:"Ticks since the run before that did not run"`
	Zone        string          `json:"zone,omitempty" doc:"Of the schedule, where it is not UTC"`
}

// Attempt is an attempt that did not succeed.
type Attempt struct {
	N        int    `json:"n"`
	Due      Time   `json:"due,omitzero"`
	Started  Time   `json:"started,omitzero"`
	Finished Time   `json:"finished,omitzero"`
	Executor string `json:"executor"`
	Error    string `json:"error"`
}

// Page is a part of a list.
type Page struct {
	Tasks   []Task `json:"tasks" doc:"In the order that was asked for"`
	Next    string `json:"next,omitempty" doc:"Cursor of the next page; absent when this is the last"`
	Stopped bool   `json:"stopped,omitempty" doc:"It ended after a look at 10,000 tasks, or 0.1 s: there may be more"`
}

// Explanation says why a task has not run, or how it ended.
type Explanation struct {
	Reason report.Reason `json:"reason" doc:"For programs"`
	Text   string        `json:"text" doc:"For people"`
	Task   Task          `json:"task"`
}

// Body is a task's body in an answer: in body when the stored text is JSON, and in body_text when it is any other text.
// A task without a body has neither.
type Body struct {
	Body     json.RawMessage `json:"body,omitempty" doc:"The body, when it is JSON"`
	BodyText *string         `json:"body_text,omitempty" doc:"The body, when it is a text but not JSON"`
}

// BodyOf sorts a stored body into the field that fits.
func BodyOf(stored []byte) Body {
	switch {
	case len(stored) == 0:
		return Body{}
	case utf8.Valid(stored) && json.Valid(stored):
		return Body{Body: stored}
	default:
		text := string(stored)
		return Body{BodyText: &text}
	}
}

// Bytes is the body as it is stored.
func (b Body) Bytes() []byte {
	if b.BodyText != nil {
		return []byte(*b.BodyText)
	}
	return b.Body
}

// FromTask is a task in JSON.
func FromTask(t *delaytask.TaskRow) Task {
	v := Task{
		ID: ID(t.ID), Tag: t.Tag, Key: t.Key, App: t.App(), Status: t.Status, Version: t.Version, Attempt: t.Attempt,
		MaxAttempts: t.MaxAttempts, CrashCount: t.CrashCount, Priority: t.Priority, DelayMS: t.Delay.Milliseconds(),
		TTRMS: t.TTR.Milliseconds(), MaxLateMS: t.MaxLate.Milliseconds(), Expected: Time(t.Expected), Due: Time(t.Due),
		Started: Time(t.Started), Finished: Time(t.Finished), Created: Time(t.Created), Updated: Time(t.Updated),
		Schedule: fromScheduledRun(t.Schedule), Executor: t.Executor, Headers: Headers(t.Headers),
		Body: BodyOf(t.Body), Error: t.ErrorStack, FailedAttempts: each(t.Errors, fromAttempt), Broken: t.Broken,
	}
	if t.MaxLate > 0 {
		v.LatePolicy = LatePolicy(t.LatePolicy)
	}
	if !t.Started.IsZero() {
		late := Milliseconds(t.Lateness())
		v.LatenessMS, v.LateReason = &late, t.Late
	}
	if t.IPAddress.IsValid() {
		v.IPAddress = t.IPAddress.String()
	}
	return v
}

// To is the task as Go has it.
func (t *Task) To() delaytask.TaskRow {
	row := delaytask.TaskRow{
		ID: int64(t.ID), Tag: t.Tag, Key: t.Key, Body: t.Bytes(), Headers: withApp(t.Headers, t.App), Status: t.Status,
		Version: t.Version, Attempt: t.Attempt, MaxAttempts: t.MaxAttempts, CrashCount: t.CrashCount,
		TTR: millis(t.TTRMS), Priority: t.Priority, MaxLate: millis(t.MaxLateMS), Delay: millis(t.DelayMS),
		Expected: t.Expected.Std(), Started: t.Started.Std(), Late: t.LateReason, Finished: t.Finished.Std(),
		Due: t.Due.Std(), Created: t.Created.Std(), Updated: t.Updated.Std(), Schedule: t.Schedule.to(),
		Executor: t.Executor, ErrorStack: t.Error, Broken: t.Broken,
	}
	row.LatePolicy, _ = ParseLatePolicy(t.LatePolicy)
	row.IPAddress, _ = netip.ParseAddr(t.IPAddress) // not valid where it is not known
	if len(t.FailedAttempts) > 0 {
		row.Errors = each(t.FailedAttempts, (*Attempt).to)
	}
	return row
}

// FromPage is a part of a list in JSON.
func FromPage(p *delaytask.Page) Page {
	return Page{Tasks: each(p.Tasks, FromTask), Next: p.Next, Stopped: p.Stopped}
}

// To is the part as Go has it.
func (p *Page) To() delaytask.Page {
	return delaytask.Page{Tasks: each(p.Tasks, (*Task).To), Next: p.Next, Stopped: p.Stopped}
}

// FromExplanation is an explanation in JSON.
func FromExplanation(e *report.Explanation) Explanation {
	return Explanation{Reason: e.Reason, Text: e.Text, Task: FromTask(&e.Task)}
}

// To is the explanation as Go has it.
func (e *Explanation) To() report.Explanation {
	explanation := report.Explanation{Task: e.Task.To(), Reason: e.Reason, Text: e.Text}
	explanation.Task.Body = nil
	return explanation
}

func fromAttempt(a *delaytask.FailedAttempt) Attempt {
	return Attempt{
		N: a.N, Due: Time(a.Due), Started: Time(a.Started), Finished: Time(a.Finished), Executor: a.Executor,
		Error: a.Error,
	}
}

func (a *Attempt) to() delaytask.FailedAttempt {
	return delaytask.FailedAttempt{
		N: a.N, Due: a.Due.Std(), Started: a.Started.Std(), Finished: a.Finished.Std(), Executor: a.Executor,
		Error: a.Error,
	}
}

// fromScheduledRun is nil for a task that is not the run of a schedule.
func fromScheduledRun(of *delaytask.ScheduledRun) *ScheduledRun {
	if of == nil {
		return nil
	}
	r := &ScheduledRun{
		Name: of.Name, Tick: Time(of.Tick), Cause: of.Cause, Previous: Time(of.Previous), Next: Time(of.Next),
		LastSuccess: Time(of.LastSuccess), Missed: of.Missed,
	}
	if zone := of.Tick.Location(); zone != time.UTC {
		r.Zone = zone.String()
	}
	return r
}

func (r *ScheduledRun) to() *delaytask.ScheduledRun {
	if r == nil {
		return nil
	}
	in := func(t Time) time.Time { return request.In(t.Std(), r.Zone) }
	return &delaytask.ScheduledRun{
		Name: r.Name, Tick: in(r.Tick), Cause: r.Cause, Previous: in(r.Previous), Next: in(r.Next),
		LastSuccess: in(r.LastSuccess), Missed: r.Missed,
	}
}
