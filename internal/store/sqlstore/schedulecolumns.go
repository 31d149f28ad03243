package sqlstore

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// The columns of delay_task_schedule by the writes that set them.
var (
	identityColumns = []column[row.Schedule]{
		integer("id", 1, math.MaxInt64, func(s *row.Schedule) *int64 { return &s.ID }),
		chars("name", func(s *row.Schedule) *string { return &s.Name }),
	}
	definitionColumns = []column[row.Schedule]{
		chars("owner", func(s *row.Schedule) *string { return &s.Owner }),
		chars("parent", func(s *row.Schedule) *string { return &s.Parent }),
		moment("revision", func(s *row.Schedule) *row.Time { return &s.Revision }),
		hash("definition", func(s *row.Schedule) *[32]byte { return &s.Hash }),
		integer("definition_version", 0, usedUp, func(s *row.Schedule) *int64 { return &s.Defined }),
		integer("grammar", 0, math.MaxInt32, func(s *row.Schedule) *int { return &s.Grammar }),
		chars("spec", func(s *row.Schedule) *string { return &s.Spec }),
		chars("tag", func(s *row.Schedule) *string { return &s.Tag }),
		blob(bodyColumn, func(s *row.Schedule) *[]byte { return &s.Body }),
		jsonOf[members]("headers", func(s *row.Schedule) *[]byte { return &s.Headers }),
		optional("max_attempts", math.MaxInt32, func(s *row.Schedule) *int { return &s.MaxAttempts }),
		millis("ttr", func(s *row.Schedule) *time.Duration { return &s.TTR }),
		integer("priority", math.MinInt16, math.MaxInt16, func(s *row.Schedule) *int { return &s.Priority }),
		oneOf("overlap", overlaps, func(s *row.Schedule) *delaytask.Overlap { return &s.Overlap }),
		oneOf("missed", missed, func(s *row.Schedule) *delaytask.Missed { return &s.Missed }),
		integer("max_open", 0, math.MaxInt32, func(s *row.Schedule) *int { return &s.MaxOpen }),
		millis("start_within", func(s *row.Schedule) *time.Duration { return &s.StartWithin }),
		millis("jitter", func(s *row.Schedule) *time.Duration { return &s.Jitter }),
		integer("pause_after", 0, math.MaxInt32, func(s *row.Schedule) *int { return &s.PauseAfter }),
		optional("max_runs", math.MaxInt32, func(s *row.Schedule) *int { return &s.MaxRuns }),
		integer("keep_runs", 0, math.MaxInt32, func(s *row.Schedule) *int { return &s.KeepRuns }),
		flag("retry_past_next", 1, func(s *row.Schedule) *bool { return &s.RetryPastNext }),
	}
	progressColumns = []column[row.Schedule]{
		integer("state", 0, int64(row.ScheduleRetiredPaused),
			func(s *row.Schedule) *row.ScheduleState { return &s.State }),
		charsOrNull("reason", func(s *row.Schedule) *string { return &s.Reason }),
		moment("state_time", func(s *row.Schedule) *row.Time { return &s.Since }),
		chars("state_by", func(s *row.Schedule) *string { return &s.By }),
		chars("zone_data", func(s *row.Schedule) *string { return &s.ZoneData }),
		moment("next_time", func(s *row.Schedule) *row.Time { return &s.Next }),
		moment("look_time", func(s *row.Schedule) *row.Time { return &s.Look }),
		moment("last_time", func(s *row.Schedule) *row.Time { return &s.Last }),
		optional("run_id", math.MaxInt64, func(s *row.Schedule) *int64 { return &s.RunID }),
		integer("runs", 0, math.MaxInt64, func(s *row.Schedule) *int64 { return &s.Runs }),
		integer("missed_ticks", 0, math.MaxInt64, func(s *row.Schedule) *int64 { return &s.MissedTicks }),
		integer("failures", 0, math.MaxInt32, func(s *row.Schedule) *int { return &s.Failures }),
		moment("success_time", func(s *row.Schedule) *row.Time { return &s.Success }),
	}
	writtenColumns = slices.Concat(identityColumns, definitionColumns, progressColumns)
)

// schedules also has the columns that every write sets.
var schedules = newTable(scheduleTable, append(writtenColumns,
	integer("version", 0, usedUp, func(s *row.Schedule) *int64 { return &s.Version }).
		decoded(func(d *decoder, s *row.Schedule, raw []byte) { s.Version = d.version(raw) }),
	moment("create_time", func(s *row.Schedule) *row.Time { return &s.Created }).notNull(),
	moment("update_time", func(s *row.Schedule) *row.Time { return &s.Updated }).notNull(),
)...)

var scheduleRuns = newTable(runTable,
	integer("schedule_id", 1, math.MaxInt64, func(r *row.ScheduleRun) *int64 { return &r.ScheduleID }),
	moment("tick", func(r *row.ScheduleRun) *row.Time { return &r.Tick }),
	integer("cause", 0, math.MaxUint8, func(r *row.ScheduleRun) *row.Cause { return &r.Cause }),
	moment("until_tick", func(r *row.ScheduleRun) *row.Time { return &r.Until }),
	integer("ticks", 0, math.MaxInt64, func(r *row.ScheduleRun) *int { return &r.Ticks }),
	integer("outcome", 0, math.MaxUint8, func(r *row.ScheduleRun) *row.Outcome { return &r.Outcome }),
	optional("task_id", math.MaxInt64, func(r *row.ScheduleRun) *int64 { return &r.TaskID }),
	charsOrNull("note", func(r *row.ScheduleRun) *string { return &r.Note }),
	moment("start_time", func(r *row.ScheduleRun) *row.Time { return &r.Start }),
	moment("finish_time", func(r *row.ScheduleRun) *row.Time { return &r.Finish }),
)

// brokenSchedule returns what a caller needs of a schedule that cannot be decoded: it goes on looking by Read.Due.
func brokenSchedule(s row.Schedule, err error) row.Broken {
	return row.Broken{
		Ref:    row.Ref{ID: s.ID, Version: s.Version},
		Status: row.Status(s.State),
		Reason: fmt.Sprintf("the schedule %q cannot be decoded: %v", s.Name, err),
		Read:   row.Row{ID: s.ID, Version: s.Version, Tag: s.Tag, Due: s.Look},
	}
}
