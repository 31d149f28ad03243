package sqlstore

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

const (
	scheduleTable = "delay_task_schedule"
	runTable      = "delay_task_schedule_run"
)

// form is how the values of a column are written and read.
type form uint8

const (
	aNumber form = iota
	aMoment
	aText
	aJSON
	aHash
)

// bind returns the mark of a value that is not written out.
func (f form) bind(d dialect) string {
	switch f {
	case aJSON:
		return d.bindJSON
	case aHash:
		return "UNHEX(?)"
	default:
		return d.bindText
	}
}

func (f form) read(d dialect, name string) string {
	switch f {
	case aNumber:
		return name
	case aMoment:
		return d.time(name)
	case aHash:
		return "HEX(" + name + ") AS " + name
	default:
		return d.text(name)
	}
}

// scheduleColumn is a column of delay_task_schedule that a decision writes.
type scheduleColumn struct {
	name  string
	form  form
	value func(*row.Schedule) any
}

// The columns by the writes that set them.
var (
	identityColumns = []scheduleColumn{
		{"id", aNumber, func(s *row.Schedule) any { return s.ID }},
		{"name", aText, func(s *row.Schedule) any { return s.Name }},
	}
	definitionColumns = []scheduleColumn{
		{"owner", aText, func(s *row.Schedule) any { return s.Owner }},
		{"parent", aText, func(s *row.Schedule) any { return s.Parent }},
		{"revision", aMoment, func(s *row.Schedule) any { return momentOrNull(s.Revision) }},
		{"definition", aHash, func(s *row.Schedule) any { return hexed(s.Hash) }},
		{"grammar", aNumber, func(s *row.Schedule) any { return int64(s.Grammar) }},
		{"spec", aText, func(s *row.Schedule) any { return s.Spec }},
		{"tag", aText, func(s *row.Schedule) any { return s.Tag }},
		{"message_body", aText, func(s *row.Schedule) any { return textOrNull(s.Body) }},
		{"headers", aJSON, func(s *row.Schedule) any { return textOrNull(s.Headers) }},
		{"max_attempts", aNumber, func(s *row.Schedule) any { return orNull(int64(s.MaxAttempts)) }},
		{"ttr", aNumber, func(s *row.Schedule) any { return s.TTR.Milliseconds() }},
		{"priority", aNumber, func(s *row.Schedule) any { return int64(s.Priority) }},
		{"overlap", aNumber, func(s *row.Schedule) any { return int64(s.Overlap) }},
		{"missed", aNumber, func(s *row.Schedule) any { return int64(s.Missed) }},
		{"max_open", aNumber, func(s *row.Schedule) any { return int64(s.MaxOpen) }},
		{"start_within", aNumber, func(s *row.Schedule) any { return s.StartWithin.Milliseconds() }},
		{"jitter", aNumber, func(s *row.Schedule) any { return s.Jitter.Milliseconds() }},
		{"pause_after", aNumber, func(s *row.Schedule) any { return int64(s.PauseAfter) }},
		{"max_runs", aNumber, func(s *row.Schedule) any { return orNull(int64(s.MaxRuns)) }},
		{"keep_runs", aNumber, func(s *row.Schedule) any { return int64(s.KeepRuns) }},
		{"retry_past_next", aNumber, func(s *row.Schedule) any { return number(s.RetryPastNext) }},
	}
	progressColumns = []scheduleColumn{
		{"state", aNumber, func(s *row.Schedule) any { return int64(s.State) }},
		{"reason", aText, func(s *row.Schedule) any { return orNull(s.Reason) }},
		{"zone_data", aText, func(s *row.Schedule) any { return s.ZoneData }},
		{"next_time", aMoment, func(s *row.Schedule) any { return momentOrNull(s.Next) }},
		{"look_time", aMoment, func(s *row.Schedule) any { return momentOrNull(s.Look) }},
		{"last_time", aMoment, func(s *row.Schedule) any { return momentOrNull(s.Last) }},
		{"run_id", aNumber, func(s *row.Schedule) any { return orNull(s.RunID) }},
		{"runs", aNumber, func(s *row.Schedule) any { return s.Runs }},
		{"missed_ticks", aNumber, func(s *row.Schedule) any { return s.MissedTicks }},
		{"failures", aNumber, func(s *row.Schedule) any { return int64(s.Failures) }},
		{"success_time", aMoment, func(s *row.Schedule) any { return momentOrNull(s.Success) }},
	}
	allScheduleColumns = slices.Concat(identityColumns, definitionColumns, progressColumns)
)

func namesOf(columns []scheduleColumn) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

// scheduleList selects the columns of scheduleRecord.
func (d dialect) scheduleList(bodies bool) string {
	var list []string
	for _, c := range allScheduleColumns {
		if c.name == "message_body" && !bodies {
			list = append(list, "NULL AS message_body")
			continue
		}
		list = append(list, c.form.read(d, c.name))
	}
	return strings.Join(append(list, "version", d.time("create_time"), d.time("update_time")), ", ")
}

// scheduleRecord is a row of delay_task_schedule.
type scheduleRecord struct {
	ID            sql.RawBytes `db:"id"`
	Name          sql.RawBytes `db:"name"`
	Version       sql.RawBytes `db:"version"`
	Owner         sql.RawBytes `db:"owner"`
	Parent        sql.RawBytes `db:"parent"`
	Revision      sql.RawBytes `db:"revision"`
	Hash          sql.RawBytes `db:"definition"`
	Grammar       sql.RawBytes `db:"grammar"`
	Spec          sql.RawBytes `db:"spec"`
	Tag           sql.RawBytes `db:"tag"`
	Body          sql.RawBytes `db:"message_body"`
	Headers       sql.RawBytes `db:"headers"`
	MaxAttempts   sql.RawBytes `db:"max_attempts"`
	TTR           sql.RawBytes `db:"ttr"`
	Priority      sql.RawBytes `db:"priority"`
	Overlap       sql.RawBytes `db:"overlap"`
	Missed        sql.RawBytes `db:"missed"`
	MaxOpen       sql.RawBytes `db:"max_open"`
	StartWithin   sql.RawBytes `db:"start_within"`
	Jitter        sql.RawBytes `db:"jitter"`
	PauseAfter    sql.RawBytes `db:"pause_after"`
	MaxRuns       sql.RawBytes `db:"max_runs"`
	KeepRuns      sql.RawBytes `db:"keep_runs"`
	RetryPastNext sql.RawBytes `db:"retry_past_next"`
	State         sql.RawBytes `db:"state"`
	Reason        sql.RawBytes `db:"reason"`
	ZoneData      sql.RawBytes `db:"zone_data"`
	Next          sql.RawBytes `db:"next_time"`
	Look          sql.RawBytes `db:"look_time"`
	Last          sql.RawBytes `db:"last_time"`
	RunID         sql.RawBytes `db:"run_id"`
	Runs          sql.RawBytes `db:"runs"`
	MissedTicks   sql.RawBytes `db:"missed_ticks"`
	Failures      sql.RawBytes `db:"failures"`
	Success       sql.RawBytes `db:"success_time"`
	Created       sql.RawBytes `db:"create_time"`
	Updated       sql.RawBytes `db:"update_time"`
}

// schedule decodes a whole row. The error says what is wrong with it. Then id, name, version and look are set if they
// could be read.
func (r *scheduleRecord) schedule() (row.Schedule, error) {
	var d decoder
	small := func(column string, raw []byte, most int64) int { return int(d.int(column, raw, 0, most)) }
	decoded := row.Schedule{
		ID:            d.int("id", r.ID, 1, math.MaxInt64),
		Name:          string(d.notNull("name", r.Name)),
		Version:       d.version(r.Version),
		Owner:         string(d.notNull("owner", r.Owner)),
		Parent:        string(d.notNull("parent", r.Parent)),
		Revision:      d.time("revision", r.Revision),
		Hash:          d.hash("definition", string(r.Hash)),
		Grammar:       small("grammar", r.Grammar, math.MaxInt32),
		Spec:          string(d.notNull("spec", r.Spec)),
		Tag:           string(d.notNull("tag", r.Tag)),
		Body:          bytes.Clone(r.Body),
		Headers:       d.json("headers", r.Headers, &map[string]json.RawMessage{}),
		MaxAttempts:   int(d.optional("max_attempts", r.MaxAttempts, math.MaxInt32)),
		TTR:           d.millis("ttr", r.TTR),
		Priority:      int(d.int("priority", r.Priority, math.MinInt16, math.MaxInt16)),
		Overlap:       row.Overlap(small("overlap", r.Overlap, int64(row.OverlapAllow))),
		Missed:        row.Missed(small("missed", r.Missed, int64(row.MissedAll))),
		MaxOpen:       small("max_open", r.MaxOpen, math.MaxInt32),
		StartWithin:   d.millis("start_within", r.StartWithin),
		Jitter:        d.millis("jitter", r.Jitter),
		PauseAfter:    small("pause_after", r.PauseAfter, math.MaxInt32),
		MaxRuns:       int(d.optional("max_runs", r.MaxRuns, math.MaxInt32)),
		KeepRuns:      small("keep_runs", r.KeepRuns, math.MaxInt32),
		RetryPastNext: small("retry_past_next", r.RetryPastNext, 1) == 1,
		State:         row.ScheduleState(small("state", r.State, int64(row.ScheduleRetiredPaused))),
		Reason:        string(r.Reason),
		ZoneData:      string(d.notNull("zone_data", r.ZoneData)),
		Next:          d.time("next_time", r.Next),
		Look:          d.time("look_time", r.Look),
		Last:          d.time("last_time", r.Last),
		RunID:         d.optional("run_id", r.RunID, math.MaxInt64),
		Runs:          d.int("runs", r.Runs, 0, math.MaxInt64),
		MissedTicks:   d.int("missed_ticks", r.MissedTicks, 0, math.MaxInt64),
		Failures:      small("failures", r.Failures, math.MaxInt32),
		Success:       d.time("success_time", r.Success),
		Created:       d.time("create_time", d.notNull("create_time", r.Created)),
		Updated:       d.time("update_time", d.notNull("update_time", r.Updated)),
	}
	return decoded, d.err
}

// runColumns lists the columns of delay_task_schedule_run in the order in which an INSERT gives their values.
var runColumns = []string{
	"schedule_id", "tick", "cause", "until_tick", "ticks", "outcome", "task_id", "note", "start_time", "finish_time",
}

func (d dialect) runList() string {
	return strings.Join([]string{
		"schedule_id", d.time("tick"), "cause", d.time("until_tick"), "ticks", "outcome", "task_id", d.text("note"),
		d.time("start_time"), d.time("finish_time"),
	}, ", ")
}

// runRecord is a row of delay_task_schedule_run.
type runRecord struct {
	ScheduleID sql.RawBytes `db:"schedule_id"`
	Tick       sql.RawBytes `db:"tick"`
	Cause      sql.RawBytes `db:"cause"`
	Until      sql.RawBytes `db:"until_tick"`
	Ticks      sql.RawBytes `db:"ticks"`
	Outcome    sql.RawBytes `db:"outcome"`
	TaskID     sql.RawBytes `db:"task_id"`
	Note       sql.RawBytes `db:"note"`
	Start      sql.RawBytes `db:"start_time"`
	Finish     sql.RawBytes `db:"finish_time"`
}

// run decodes what can be read and leaves the rest zero: one broken row must not hide the others.
func (r *runRecord) run() row.ScheduleRun {
	var d decoder
	return row.ScheduleRun{
		ScheduleID: d.int("schedule_id", r.ScheduleID, 1, math.MaxInt64),
		Tick:       d.time("tick", r.Tick),
		Cause:      row.Cause(d.int("cause", r.Cause, 0, math.MaxUint8)),
		Until:      d.time("until_tick", r.Until),
		Ticks:      int(d.int("ticks", r.Ticks, 0, math.MaxInt64)),
		Outcome:    row.Outcome(d.int("outcome", r.Outcome, 0, math.MaxUint8)),
		TaskID:     d.optional("task_id", r.TaskID, math.MaxInt64),
		Note:       string(r.Note),
		Start:      d.time("start_time", r.Start),
		Finish:     d.time("finish_time", r.Finish),
	}
}

// brokenSchedule returns what a caller needs of a schedule that cannot be decoded: the time by which it looks on is
// Read.Due.
func brokenSchedule(s row.Schedule, err error) row.Broken {
	return row.Broken{
		Ref:    row.Ref{ID: s.ID, Version: s.Version},
		Status: row.Status(s.State),
		Reason: fmt.Sprintf("the schedule %q cannot be decoded: %v", s.Name, err),
		Read:   row.Row{ID: s.ID, Version: s.Version, Tag: s.Tag, Due: s.Look},
	}
}
