package sqlstore

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// tasks has the columns of delay_task_message. Reads and INSERTs have them in this order, except for what reading and
// saving say.
var tasks = newTable(table,
	integer("id", 1, math.MaxInt64, func(r *row.Row) *int64 { return &r.ID }).with(byAttempt, always),
	chars("tag", func(r *row.Row) *string { return &r.Tag }).with(byAttempt, shared),
	charsOrNull("task_key", func(r *row.Row) *string { return &r.Key }).with(byAttempt, whereSet),
	column[row.Row]{name: generated[0]},
	blob(bodyColumn, func(r *row.Row) *[]byte { return &r.Body }).
		stored(func(r *row.Row) any { return string(r.Body) }).with(byOwner, always),
	integer("status", 0, math.MaxUint8, func(r *row.Row) *row.Status { return &r.Status }).decoded(decodeStatus).
		with(byOwner, byTable),
	integer("version", 0, usedUp, func(r *row.Row) *int64 { return &r.Version }).
		decoded(func(d *decoder, r *row.Row, raw []byte) { r.Version = d.version(raw) }).with(byAttempt, byTable),
	integer("attempt", 0, math.MaxInt32, func(r *row.Row) *int { return &r.Attempt }).with(byAttempt, byTable),
	optional("max_attempts", math.MaxInt32, func(r *row.Row) *int { return &r.MaxAttempts }).with(byAttempt, shared),
	integer("crash_count", 0, math.MaxInt32, func(r *row.Row) *int { return &r.CrashCount }).with(byAttempt, byTable),
	millis("ttr", func(r *row.Row) *time.Duration { return &r.TTR }).
		decoded(func(d *decoder, r *row.Row, raw []byte) { r.TTR = max(d.millis("ttr", raw), row.MinTTR) }).
		with(byAttempt, shared),
	integer("priority", math.MinInt16, math.MaxInt16, func(r *row.Row) *int { return &r.Priority }).
		with(byAttempt, whereSet),
	jsonOf[members]("headers", func(r *row.Row) *[]byte { return &r.Headers }).with(byAttempt, whereSet),
	millis("max_late_ms", func(r *row.Row) *time.Duration { return &r.MaxLate }).with(byAttempt, whereSet),
	integer("late_policy", 0, int64(delaytask.LateFail),
		func(r *row.Row) *delaytask.LatePolicy { return &r.LatePolicy }).with(byAttempt, whereSet),
	optionalOf("late_reason", lateReasons, func(r *row.Row) *delaytask.LateReason { return &r.Late }).
		with(byPeople, byTable),
	optional("ip_address", math.MaxUint32, func(r *row.Row) *uint32 { return &r.IPAddress }).with(byOwner, byTable),
	whole64("process", func(r *row.Row) *int64 { return &r.Executor.Process }).with(byOwner, byTable),
	whole64("claim", func(r *row.Row) *int64 { return &r.Executor.Claim }).with(byOwner, byTable),
	millis("delay_time", func(r *row.Row) *time.Duration { return &r.Delay }).with(byOwner, whereSet),
	moment("expected_time", func(r *row.Row) *row.Time { return &r.Expected }).notNull().with(byAttempt, always),
	moment("start_time", func(r *row.Row) *row.Time { return &r.Execution }).decoded(decodeStart).
		with(byAttempt, byTable),
	column[row.Row]{name: generated[1]},
	column[row.Row]{name: generated[2]},
	moment("due_time", func(r *row.Row) *row.Time { return &r.Due }).with(byAttempt, asExpected),
	charsOrNull("error_stack", func(r *row.Row) *string { return &r.ErrorStack }).with(byAttempt, byTable),
	jsonOf[elements]("errors", func(r *row.Row) *[]byte { return &r.Errors }).with(byAttempt, byTable),
	moment("create_time", func(r *row.Row) *row.Time { return &r.Created }).notNull().with(byPeople, atNow),
	moment("update_time", func(r *row.Row) *row.Time { return &r.Updated }).notNull().with(byPeople, atNow),
	column[row.Row]{
		name: "schedule", form: aText, unset: ofNoSchedule,
		value: func(r *row.Row) any {
			if ofNoSchedule(r) {
				return nil
			}
			return r.TickOf.Schedule
		},
		decode: func(_ *decoder, r *row.Row, raw []byte) {
			if raw != nil {
				r.TickOf = &row.TickOf{Schedule: string(raw)}
			}
		},
	}.with(byAttempt, whereSet),
	ofRun(moment("tick", func(of *row.TickOf) *row.Time { return &of.Tick }).notNull().as(aMomentOfRun)),
	ofRun(integer("cause", 0, int64(row.CauseBackfill), func(of *row.TickOf) *row.Cause { return &of.Cause })),
	ofRun(moment("retry_before", func(of *row.TickOf) *row.Time { return &of.RetryBefore }).as(aMomentOfRun)),
	ofRun(column[row.TickOf]{
		name: "tick_context", form: aText,
		value: func(of *row.TickOf) any { return string(of.Context()) },
		decode: func(d *decoder, of *row.TickOf, raw []byte) {
			if err := of.ReadContext(raw); err != nil {
				d.fail("tick_context", err)
			}
		},
	}),
)

// unsetStart is the start_time of a task that was not started. The column is never NULL, so that a row keeps its size
// when it is claimed.
const unsetStart = "1970-01-01 00:00:00.000000"

// orUnset returns what is stored as start_time.
func orUnset(start row.Time) any {
	if start.IsZero() {
		return unsetStart
	}
	return start
}

func decodeStart(d *decoder, r *row.Row, raw []byte) {
	if string(raw) != unsetStart {
		r.Execution = d.time("start_time", d.notNull("start_time", raw))
	}
}

// decodeStatus keeps a status that is not known.
func decodeStatus(d *decoder, r *row.Row, raw []byte) {
	r.Status = row.Status(d.int("status", raw, 0, math.MaxUint8))
	if r.Status > row.Cancelled {
		d.fail("status", fmt.Errorf("%d is not known", r.Status))
	}
}

// ofRun is a column that only the runs of schedules have. It follows the column schedule.
func ofRun(c column[row.TickOf]) column[row.Row] {
	return column[row.Row]{
		name: c.name, form: c.form, unset: ofNoSchedule,
		value: func(r *row.Row) any {
			if ofNoSchedule(r) {
				return nil
			}
			return c.value(r.TickOf)
		},
		decode: func(d *decoder, r *row.Row, raw []byte) {
			if !ofNoSchedule(r) {
				c.decode(d, r.TickOf, raw)
			}
		},
	}.with(byAttempt, whereSet)
}

func ofNoSchedule(r *row.Row) bool { return r.TickOf == nil }

// What reads of whole tasks and an INSERT have.
var (
	attemptColumns = tasksRead(byAttempt)
	wholeColumns   = slices.Concat(attemptColumns, tasksRead(byOwner), tasksRead(byPeople))
	claimedColumns = append(attemptColumns[:len(attemptColumns):len(attemptColumns)], tasks.byName[bodyColumn])
	stateColumns   = tasks.pick("id", "tag", "version", "status", "due_time", "process", "claim")
	savedColumns   = tasksSaved()
)

func tasksRead(by reading) []column[row.Row] {
	return slices.DeleteFunc(slices.Clone(tasks.columns), func(c column[row.Row]) bool { return c.read != by })
}

// tasksSaved has expected_time in the second place: see dialect.secondValue.
func tasksSaved() []column[row.Row] {
	saved := tasks.pick("id", "expected_time")
	for _, c := range tasks.columns {
		if c.save != byTable && c.name != saved[0].name && c.name != saved[1].name {
			saved = append(saved, c)
		}
	}
	return saved
}
