package wire

import (
	"encoding/json"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/report"
)

// ScheduleSave is the definition of a schedule. The option that is left out has its default.
type ScheduleSave struct {
	Spec
	Tag string `json:"tag" minLength:"1" maxLength:"128" pattern:"^[-A-Za-z0-9._:/]+$" doc:"Of the runs"`
	App string `json:"app,omitempty" doc:"The application that the runs belong to: only its receivers are called"`

	Body     json.RawMessage `json:"body,omitempty" doc:"Of the runs: any JSON; stored as it is sent"`
	BodyText *string         `json:"body_text,omitempty" doc:"Instead of body: any text, stored without its quotes"`
	TTR      Duration        `json:"ttr,omitzero" doc:"Length of a lease, 1 s to 24 h; default 15 s"`

	MaxAttempts    int  `json:"max_attempts,omitempty" minimum:"0" maximum:"1000000" doc:"Tries; 0: the default of 20"`
	NoAttemptLimit bool `json:"no_attempt_limit,omitempty" doc:"Until it succeeds, is cancelled, or the next is due"`
	Priority       int  `json:"priority,omitempty" minimum:"-100" maximum:"100" doc:"Larger first among due tasks"`

	Headers map[string]string `json:"headers,omitempty" doc:"Travel beside the body; together at most 16 KiB"`
	Overlap delaytask.Overlap `json:"overlap,omitempty"`

	MaxOpen int `json:"max_open,omitempty" minimum:"1" maximum:"10000" doc:"With allow: runs open at once; default 100"`

	Missed delaytask.Missed `json:"missed,omitempty"`

	StartWithin Duration `json:"start_within,omitzero" doc:"How late a tick may start, at least 1 s; default: no bound"`
	Jitter      Duration `json:"jitter,omitzero" doc:"Delays runs by up to this, as the name decides; at most 24 h"`

	PauseAfter    int  `json:"pause_after,omitempty" minimum:"0" doc:"Pause after so many failures in a row; 0: never"`
	MaxRuns       int  `json:"max_runs,omitempty" minimum:"0" doc:"End after so many runs; 0: no bound"`
	KeepRuns      int  `json:"keep_runs,omitempty" minimum:"1" maximum:"100000" doc:"Rows of the history; default 100"`
	RetryPastNext bool `json:"retry_past_next,omitempty" doc:"Attempts of a run may begin after the next tick is due"`
}

// Schedule is a schedule as it is stored.
type Schedule struct {
	Name string `json:"name"`
	Spec
	ID       ID     `json:"id,omitzero"`
	Parent   string `json:"parent,omitempty" doc:"Of a backfill: the schedule whose ticks it runs"`
	Owner    string `json:"owner,omitempty" doc:"The set of a program that declares it"`
	Revision Time   `json:"revision,omitzero" doc:"Of the program that declared it"`
	Version  int64  `json:"version" doc:"Grows with each change"`

	Tag     string            `json:"tag"`
	App     string            `json:"app,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Body

	TTRMS         int64             `json:"ttr_ms" doc:"Length of a lease"`
	MaxAttempts   int               `json:"max_attempts" doc:"0: no limit"`
	Priority      int               `json:"priority"`
	Overlap       delaytask.Overlap `json:"overlap"`
	MaxOpen       int               `json:"max_open,omitempty"`
	Missed        delaytask.Missed  `json:"missed"`
	StartWithinMS int64             `json:"start_within_ms,omitempty" doc:"0 or absent: no bound"`
	JitterMS      int64             `json:"jitter_ms,omitempty"`
	PauseAfter    int               `json:"pause_after,omitempty" doc:"0 or absent: never"`
	MaxRuns       int               `json:"max_runs,omitempty" doc:"0 or absent: no bound"`
	KeepRuns      int               `json:"keep_runs"`
	RetryPastNext bool              `json:"retry_past_next,omitempty"`

	State       delaytask.ScheduleState `json:"state"`
	Reason      string                  `json:"reason,omitempty" doc:"Why it is paused, ended or retired"`
	Since       Time                    `json:"since,omitzero" doc:"When it came into its state"`
	By          string                  `json:"by,omitempty" doc:"Who has brought it there"`
	NextTick    Time                    `json:"next_tick,omitzero" doc:"The first tick about which nothing is decided"`
	NextDue     Time                    `json:"next_due,omitzero" doc:"When that tick is due: later by the jitter"`
	LastTick    Time                    `json:"last_tick,omitzero" doc:"The last tick about which something is decided"`
	RunID       ID                      `json:"run_id,omitzero" doc:"The task of its newest run"`
	Runs        int64                   `json:"runs" doc:"That count against max_runs"`
	Skipped     int64                   `json:"skipped,omitempty" doc:"Ticks since the newest run that did not run"`
	Failures    int                     `json:"failures,omitempty" doc:"Failed runs in a row"`
	LastSuccess Time                    `json:"last_success,omitzero" doc:"Tick of the last run that completed"`
	Created     Time                    `json:"created,omitzero" doc:"Absent in the answer to a save that is the first"`
	Updated     Time                    `json:"updated,omitzero" doc:"Likewise"`

	Redacted bool `json:"redacted,omitempty" doc:"[delaytask-redacted] hides secrets; raw=true shows them"`
}

// SchedulePage is a part of a list of schedules.
type SchedulePage struct {
	Schedules []Schedule `json:"schedules" doc:"By name"`
	Next      string     `json:"next,omitempty" doc:"after of the next page; absent when this is the last"`
}

// Pause pauses a tag or a schedule.
type Pause struct {
	Reason string `json:"reason,omitempty" doc:"Kept, for people"`
}

// ScheduleTrigger runs a schedule once, now.
type ScheduleTrigger struct {
	Beside bool `json:"beside,omitempty" doc:"Also beside a run that executes"`
}

// ScheduleTriggered names the task of the run.
type ScheduleTriggered struct {
	ID ID `json:"id" doc:"The task of the run"`
}

// ScheduleSkipped names the tick that does not run.
type ScheduleSkipped struct {
	Tick Time `json:"tick"`
}

// ScheduleBackfill asks for the past ticks of a schedule.
type ScheduleBackfill struct {
	From   *Moment `json:"from" doc:"The first tick"`
	To     *Moment `json:"to" doc:"The last tick"`
	AtOnce int     `json:"at_once,omitempty" minimum:"1" maximum:"1000" doc:"Runs that may be open at once; default 1"`
}

// ScheduleBackfilled names the schedule of a backfill.
type ScheduleBackfilled struct {
	Name string `json:"name" doc:"A schedule of its own, which can be paused, resumed and deleted"`
}

// ScheduleTicks is the history of a schedule, the newest tick first.
type ScheduleTicks struct {
	Ticks []ScheduleTick `json:"ticks"`
}

// ScheduleExplanation says how a schedule stands, or what became of one of its ticks.
type ScheduleExplanation struct {
	Schedule Schedule      `json:"schedule"`
	Tick     Time          `json:"tick,omitzero" doc:"Which tick was asked about"`
	History  *ScheduleTick `json:"history,omitempty" doc:"What the history has about it"`
	Text     string        `json:"text"`
}

// ScheduleTick is what became of a tick, or of several in a row.
type ScheduleTick struct {
	Tick     Time              `json:"tick"`
	Until    Time              `json:"until,omitzero" doc:"The last tick that it is about"`
	Ticks    int               `json:"ticks" doc:"How many these are"`
	Cause    delaytask.Cause   `json:"cause"`
	Outcome  delaytask.Outcome `json:"outcome" enum:"open,completed,failed,cancelled,skipped,missed,unknown"`
	TaskID   ID                `json:"task_id,omitzero" doc:"Absent when there was no run"`
	Note     string            `json:"note,omitempty" doc:"Why"`
	Started  Time              `json:"started,omitzero"`
	Finished Time              `json:"finished,omitzero"`
}

// FromScheduleSave asks for a schedule. Its name stands elsewhere.
func FromScheduleSave(s *request.ScheduleSave) *ScheduleSave {
	task, set := FromSave(&s.Task), &s.Settings
	return &ScheduleSave{
		Spec: FromSpec(&s.Spec), Tag: task.Tag, App: task.App, Body: task.Body, BodyText: task.BodyText, TTR: task.TTR,
		MaxAttempts: task.MaxAttempts, NoAttemptLimit: task.NoAttemptLimit, Priority: task.Priority,
		Headers: task.Headers, Overlap: set.Overlap, MaxOpen: set.MaxOpen, Missed: set.Missed,
		StartWithin: Duration(set.StartWithin), Jitter: Duration(set.Jitter), PauseAfter: set.PauseAfter,
		MaxRuns: set.MaxRuns, KeepRuns: set.KeepRuns, RetryPastNext: set.RetryPastNext,
	}
}

// FromSchedule is a schedule in JSON.
func FromSchedule(s *delaytask.Schedule) Schedule {
	return Schedule{
		Name: s.Name, Spec: FromSpec(&s.Spec), ID: ID(s.ID), Parent: s.Parent, Owner: s.Owner,
		Revision: Time(s.Revision), Version: s.Version, Tag: s.Tag, App: s.Headers[delaytask.AppHeader],
		Headers: Headers(s.Headers), Body: BodyOf(s.Body), TTRMS: s.TTR.Milliseconds(), MaxAttempts: s.MaxAttempts,
		Priority: s.Priority, Overlap: s.Overlap, MaxOpen: s.MaxOpen, Missed: s.Missed,
		StartWithinMS: s.StartWithin.Milliseconds(), JitterMS: s.Jitter.Milliseconds(), PauseAfter: s.PauseAfter,
		MaxRuns: s.MaxRuns, KeepRuns: s.KeepRuns, RetryPastNext: s.RetryPastNext, State: s.State, Reason: s.Reason,
		Since: Time(s.Since), By: s.By,
		NextTick: Time(s.NextTick), NextDue: Time(s.NextDue), LastTick: Time(s.LastTick), RunID: ID(s.RunID),
		Runs: s.Runs, Skipped: s.Skipped, Failures: s.Failures, LastSuccess: Time(s.LastSuccess),
		Created: Time(s.Created), Updated: Time(s.Updated),
	}
}

// To is the schedule as Go has it.
func (s *Schedule) To() delaytask.Schedule {
	return delaytask.Schedule{
		ID: int64(s.ID), Name: s.Name, Parent: s.Parent, Owner: s.Owner, Revision: s.Revision.Std(),
		Version: s.Version, Spec: s.Spec.To(), Tag: s.Tag, Body: s.Bytes(), Headers: withApp(s.Headers, s.App),
		MaxAttempts: s.MaxAttempts, TTR: millis(s.TTRMS), Priority: s.Priority, Overlap: s.Overlap, MaxOpen: s.MaxOpen,
		Missed: s.Missed, StartWithin: millis(s.StartWithinMS), Jitter: millis(s.JitterMS), PauseAfter: s.PauseAfter,
		MaxRuns: s.MaxRuns, KeepRuns: s.KeepRuns, RetryPastNext: s.RetryPastNext, State: s.State, Reason: s.Reason,
		Since: s.Since.Std(), By: s.By,
		NextTick: s.NextTick.Std(), NextDue: s.NextDue.Std(), LastTick: s.LastTick.Std(), RunID: int64(s.RunID),
		Runs: s.Runs, Skipped: s.Skipped, Failures: s.Failures, LastSuccess: s.LastSuccess.Std(),
		Created: s.Created.Std(), Updated: s.Updated.Std(),
	}
}

// To is the page as Go has it.
func (p *SchedulePage) To() delaytask.SchedulePage {
	return delaytask.SchedulePage{Schedules: each(p.Schedules, (*Schedule).To), Next: p.Next}
}

// FromScheduleTicks is the history of a schedule in JSON.
func FromScheduleTicks(ticks []delaytask.ScheduleTick) ScheduleTicks {
	return ScheduleTicks{each(ticks, fromScheduleTick)}
}

// To is the history as Go has it.
func (t *ScheduleTicks) To() []delaytask.ScheduleTick { return each(t.Ticks, (*ScheduleTick).to) }

func fromScheduleTick(t *delaytask.ScheduleTick) ScheduleTick {
	return ScheduleTick{
		Tick: Time(t.Tick), Until: Time(t.Until), Ticks: t.Ticks, Cause: t.Cause, Outcome: t.Outcome,
		TaskID: ID(t.TaskID), Note: t.Note, Started: Time(t.Start), Finished: Time(t.Finish),
	}
}

func (t *ScheduleTick) to() delaytask.ScheduleTick {
	return delaytask.ScheduleTick{
		Tick: t.Tick.Std(), Until: t.Until.Std(), Ticks: t.Ticks, Cause: t.Cause, Outcome: t.Outcome,
		TaskID: int64(t.TaskID), Note: t.Note, Start: t.Started.Std(), Finish: t.Finished.Std(),
	}
}

// FromScheduleExplanation is an explanation of a schedule in JSON.
func FromScheduleExplanation(e *report.ScheduleExplanation) ScheduleExplanation {
	v := ScheduleExplanation{Schedule: FromSchedule(&e.Schedule), Tick: Time(e.Tick), Text: e.Text}
	if !e.History.Tick.IsZero() {
		history := fromScheduleTick(&e.History)
		v.History = &history
	}
	return v
}

// To is the explanation as Go has it.
func (e *ScheduleExplanation) To() report.ScheduleExplanation {
	explanation := report.ScheduleExplanation{Schedule: e.Schedule.To(), Tick: e.Tick.Std(), Text: e.Text}
	if e.History != nil {
		explanation.History = e.History.to()
	}
	return explanation
}
