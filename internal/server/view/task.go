package view

import (
	"maps"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
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
		Expected: wire.Time(t.Expected), Due: wire.Time(t.Due), Started: wire.Time(t.Started), Finished: wire.Time(t.Finished),
		Created: wire.Time(t.Created), Updated: wire.Time(t.Updated),
		Executor: t.Executor, Headers: Headers(t.Headers), Body: wire.BodyOf(t.Body), Error: t.ErrorStack, Broken: t.Broken,
	}
	if t.MaxLate > 0 {
		v.LatePolicy = LatePolicy(t.LatePolicy)
	}
	if !t.Started.IsZero() {
		late := Milliseconds(t.Lateness())
		v.LatenessMS = &late
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
	if _, reserved := stored[processor.AppHeader]; !reserved {
		return stored
	}
	shown := maps.Clone(stored)
	delete(shown, processor.AppHeader)
	return shown
}

// Popped is a task that was handed out.
func Popped(p *delaytask.Popped) wire.Popped {
	return wire.Popped{
		ID: wire.ID(p.ID), Token: p.Token().String(), Tag: p.Tag, Key: p.Key, App: p.App(), Attempt: p.Attempt, Priority: p.Priority,
		Expected: wire.Time(p.Expected), Due: wire.Time(p.Due), Headers: Headers(p.Headers), Body: wire.BodyOf(p.Body),
	}
}

// Milliseconds is a duration as JSON has it, to the microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
