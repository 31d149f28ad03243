package main

import (
	"github.com/delaytask/delaytask"
)

// taskView is a task in JSON. Ids are strings: they are longer than the numbers that JavaScript and jq keep exactly.
type taskView struct {
	ID          int64             `json:"id,string"`
	Tag         string            `json:"tag,omitempty"`
	Key         string            `json:"key,omitempty"`
	Status      delaytask.Status  `json:"status"`
	Version     int64             `json:"version"`
	Attempt     int               `json:"attempt"`
	MaxAttempts int               `json:"max_attempts"` // 0: no limit
	CrashCount  int               `json:"crash_count"`
	Priority    int               `json:"priority"`
	DelayMS     int64             `json:"delay_ms"`
	TTRMS       int64             `json:"ttr_ms"`
	MaxLateMS   int64             `json:"max_late_ms,omitempty"`
	LatePolicy  string            `json:"late_policy,omitempty"`
	Expected    moment            `json:"expected,omitzero"`
	Due         moment            `json:"due,omitzero"`
	Started     moment            `json:"started,omitzero"`
	LatenessMS  *float64          `json:"lateness_ms,omitempty"` // absent until the first attempt has started
	Finished    moment            `json:"finished,omitzero"`
	Created     moment            `json:"created,omitzero"`
	Updated     moment            `json:"updated,omitzero"`
	Executor    string            `json:"executor,omitempty"`
	IPAddress   string            `json:"ip_address,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Body        *string           `json:"body,omitempty"` // absent where it was not read
	Error       string            `json:"error,omitempty"`
	Attempts    []attemptView     `json:"failed_attempts,omitempty"`
	Broken      string            `json:"broken,omitempty"`
}

type attemptView struct {
	N        int    `json:"n"`
	Due      moment `json:"due,omitzero"`
	Started  moment `json:"started,omitzero"`
	Finished moment `json:"finished,omitzero"`
	Executor string `json:"executor"`
	Error    string `json:"error"`
}

func viewOf(t *delaytask.Task) taskView {
	v := taskView{
		ID: t.ID, Tag: t.Tag, Key: t.Key, Status: t.Status, Version: t.Version,
		Attempt: t.Attempt, MaxAttempts: t.MaxAttempts, CrashCount: t.CrashCount, Priority: t.Priority,
		DelayMS: t.Delay.Milliseconds(), TTRMS: t.TTR.Milliseconds(), MaxLateMS: t.MaxLate.Milliseconds(),
		Expected: moment(t.Expected), Due: moment(t.Due), Started: moment(t.Started), Finished: moment(t.Finished),
		Created: moment(t.Created), Updated: moment(t.Updated),
		Executor: t.Executor, Headers: t.Headers, Error: t.ErrorStack, Broken: t.Broken,
	}
	if t.MaxLate > 0 {
		v.LatePolicy = latePolicyName(t.LatePolicy)
	}
	if !t.Started.IsZero() {
		late := milliseconds(t.Lateness())
		v.LatenessMS = &late
	}
	if t.IPAddress.IsValid() {
		v.IPAddress = t.IPAddress.String()
	}
	if t.Body != nil {
		body := string(t.Body)
		v.Body = &body
	}
	for _, a := range t.Errors {
		v.Attempts = append(v.Attempts, attemptView{
			N: a.N, Due: moment(a.Due), Started: moment(a.Started), Finished: moment(a.Finished),
			Executor: a.Executor, Error: a.Error,
		})
	}
	return v
}

func viewsOf(tasks []delaytask.Task) []taskView {
	views := make([]taskView, len(tasks)) // not nil: an empty list is [] in JSON
	for i := range tasks {
		views[i] = viewOf(&tasks[i])
	}
	return views
}
