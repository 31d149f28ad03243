package wire

import (
	"encoding/json"

	"github.com/delaytask/delaytask"
)

// Save asks for a task. Delay and At exclude each other; without both the task is due now.
type Save struct {
	Tag string `json:"tag" minLength:"1" maxLength:"128" pattern:"^[-A-Za-z0-9._:/]+$" doc:"Names its processor"`
	App string `json:"app,omitempty" doc:"Application: only its receivers are called, and the key is unique in it"`

	Body     json.RawMessage `json:"body,omitempty" doc:"Any JSON; stored as it is sent"`
	BodyText *string         `json:"body_text,omitempty" doc:"Instead of body: any text, stored without its quotes"`

	Delay *Delay   `json:"delay,omitempty" doc:"Due so long from now"`
	At    *Moment  `json:"at,omitempty" doc:"Due at this moment; in the past means now"`
	Key   string   `json:"key,omitempty" maxLength:"255" doc:"At most one unfinished task of the tag and app has it"`
	ID    ID       `json:"id,omitzero" doc:"From an earlier save whose outcome was unknown: it is not stored twice"`
	TTR   Duration `json:"ttr,omitzero" doc:"Length of a lease, 1 s to 24 h; default 15 s"`

	MaxAttempts    int  `json:"max_attempts,omitempty" minimum:"0" maximum:"1000000" doc:"Tries; 0: the default of 20"`
	NoAttemptLimit bool `json:"no_attempt_limit,omitempty" doc:"Try until it succeeds or is cancelled"`
	Priority       int  `json:"priority,omitempty" minimum:"-100" maximum:"100" doc:"Larger first among due tasks"`

	Headers map[string]string `json:"headers,omitempty" doc:"Travel beside the body; together at most 16 KiB"`

	MaxLateness Duration `json:"max_lateness,omitzero" doc:"If it starts later, late_policy says what happens"`
	LatePolicy  string   `json:"late_policy,omitempty" enum:"run,skip,fail" doc:"Default: skip, which cancels it"`

	OnConflict delaytask.ConflictMode `json:"on_conflict,omitempty"`

	MaxWait Duration `json:"max_wait,omitzero" doc:"With on_conflict: how long after its first save it may be put off"`
}

// Saved is a task that was saved, or the unfinished one that has the key.
type Saved struct {
	Task
	Duplicate   bool `json:"duplicate,omitempty" doc:"The unfinished task of the tag that has the key, as it was"`
	Rescheduled bool `json:"rescheduled,omitempty" doc:"Likewise, and it has the time of this save"`
	Existing    bool `json:"existing,omitempty" doc:"The same save was made before, by its id or Idempotency-Key"`
	Gone        bool `json:"gone,omitempty" doc:"Its task was deleted since: only id, tag and key are known"`
}

// BatchSaved has the outcomes of the tasks of a batch, in the order of the request.
type BatchSaved struct {
	Results []BatchResult `json:"results"`
	Chunks  []BatchChunk  `json:"chunks" doc:"The batch in the parts that were stored as a whole or not at all"`
}

// BatchResult is the outcome of one task of a batch.
type BatchResult struct {
	ID          ID     `json:"id,omitzero" doc:"Of the task, or the one met; after outcome_unknown save again with it"`
	Duplicate   bool   `json:"duplicate,omitempty" doc:"id is the unfinished task of the tag that has the key"`
	Rescheduled bool   `json:"rescheduled,omitempty" doc:"As duplicate, and that task has the time of this save"`
	Code        string `json:"code,omitempty" doc:"Why it was not stored; absent when it was"`
	Detail      string `json:"detail,omitempty"`
	NotStored   bool   `json:"not_stored,omitzero" doc:"As in a problem"`
}

// BatchChunk is the outcome of a chunk: this many tasks of the batch, after the tasks of the chunk before.
type BatchChunk struct {
	Count   int      `json:"count" doc:"Tasks in it"`
	Outcome string   `json:"outcome" enum:"stored,refused,unknown,not_tried" doc:"unknown: all of its tasks, or none"`
	Errors  []Detail `json:"errors,omitempty" doc:"The tasks that it was refused for, as line 17 or body[16]"`
}

// The outcomes of chunks.
const (
	ChunkStored   = "stored"
	ChunkRefused  = "refused"
	ChunkUnknown  = "unknown"
	ChunkNotTried = "not_tried"
)

// Change sets another due time, another body, or both, of a pending task.
type Change struct {
	Delay *Delay          `json:"delay,omitempty" doc:"Due so long from now"`
	At    *Moment         `json:"at,omitempty" doc:"Due at this moment; in the past means now"`
	Body  json.RawMessage `json:"body,omitempty" doc:"Replaces the body"`

	BodyText *string `json:"body_text,omitempty" doc:"Instead of body: any text; an empty one empties the body"`
	Version  *int64  `json:"version,omitempty" minimum:"0" doc:"Only at this version; else 409 version_changed"`
}

// Met is the status in which a change has met its task.
type Met struct {
	ID  ID               `json:"id,omitzero"`
	Met delaytask.Status `json:"met" doc:"The status met: a pending task will not start, an executing one may have"`
}

// FromSave asks for a task.
func FromSave(s *delaytask.Save) *Save {
	body := BodyOf(s.Body)
	w := &Save{
		Tag: s.Tag, App: s.Headers[delaytask.AppHeader], Body: body.Body, BodyText: body.BodyText, Key: s.Key,
		ID: ID(s.ID), TTR: Duration(s.TTR), MaxAttempts: s.MaxAttempts, NoAttemptLimit: s.Unlimited,
		Priority: s.Priority, Headers: Headers(s.Headers), OnConflict: s.OnConflict,
		MaxWait: Duration(s.MaxWait),
	}
	if s.Delay > 0 {
		w.Delay = (*Delay)(&s.Delay)
	}
	if !s.At.IsZero() {
		w.At = NotBefore(s.At)
	}
	if s.MaxLate > 0 {
		w.MaxLateness, w.LatePolicy = Duration(s.MaxLate), LatePolicy(s.LatePolicy)
	}
	return w
}
