package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// plan lists statements. What they name need not exist.
type plan []planned

func (p *plan) add(key, name string, c clause) { *p = append(*p, planned{name, c.sql, c.args, key}) }

// The moment and the tags that listed statements name.
var (
	plannedTime = row.At(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	plannedTags = func() []string {
		tags := make([]string, 300)
		for i := range tags {
			tags[i] = fmt.Sprint("t", i)
		}
		return tags
	}()
)

// plannedStatements lists one statement of each form that the engine sends to read or write tasks, except for INSERTs,
// which have no plan. The rows that they name need not exist.
func plannedStatements(d dialect) (all plan) {
	now, add := plannedTime, all.add
	someone := row.Executor{Process: 7, Claim: 1}
	one := []row.Ref{{ID: 7}}
	mixed := []row.Ref{{ID: 7}, {ID: 8, Version: 3}, {ID: 9}}
	change := func(id int64, to row.Status, text string) row.Change {
		return row.Change{ID: id, Version: 1, From: row.Executing, To: to, Due: now.Add(time.Duration(id)),
			ErrorStack: text, Executor: someone}
	}
	crowd := make([]row.Ref, 300) // enough that a server would rather read all rows of a rare status
	for i := range crowd {
		crowd[i].ID = int64(i) + 1
	}
	completions := make([]row.Change, 200)
	for i := range completions {
		completions[i] = change(int64(i)+1, row.Completed, "")
		completions[i].Execution = now.Add(time.Duration(i) * time.Millisecond)
	}
	add(primary, "claim of one", d.claim(row.Claim{Rows: one, Executor: someone}))
	add(primary, "claim of many", d.claim(row.Claim{Rows: crowd, Executor: someone}))
	add(primary, "claim of several versions", d.claim(row.Claim{Rows: mixed, Executor: someone}))
	add(primary, "winners of a claim", d.winners(row.Claim{Rows: crowd, Executor: someone}))
	add(primary, "renewal", d.renew([]row.Lease{{Ref: one[0], TTR: time.Second}, {Ref: mixed[1], TTR: time.Minute}}))
	add(primary, "hand-over", d.renew([]row.Lease{
		{Ref: one[0], TTR: time.Second, Executor: someone.ForPop(), Execution: now},
		{Ref: mixed[1], TTR: time.Minute}}))
	add(primary, "settle of one", d.update([]row.Change{change(7, row.Completed, "")}))
	add(primary, "settle of completions", d.update(completions))
	add(primary, "settle of all kinds", d.update([]row.Change{
		change(7, row.Completed, ""), change(8, row.Failed, "boom"),
		{ID: 9, From: row.Executing, LeaseOver: true, Due: now, Expected: now},
		{ID: 10, From: row.Executing, LeaseBy: now, Due: now}}))
	add(primary, "new body", d.update([]row.Change{
		{ID: 7, From: row.Pending, Due: now, Body: []byte("b"), SameExecutor: true}}))
	add(primary, "adoption", d.adopt(mixed))
	add(primary, "discard", d.discard([]row.Broken{{Ref: one[0], Reason: "a"}, {Ref: mixed[1], Reason: "b"}}))
	add(primary, "misnumbered", d.misnumbered(1<<62, 10))
	add(primary, "renumber", d.renumber("9223372036854775808", 7))
	add(primary, "purge", d.purge(row.Completed, now, []int64{7, 8}))
	add(primary, "tasks by id", d.rowsByID(d.taskList(true), sortedIDs(crowd, refID)))
	add(primary, "states by id", d.rowsByID(selectList(d, "", stateColumns), sortedIDs(crowd, refID)))
	if d.rowLocks {
		add(primary, "check for locks", d.selectByID(sortedIDs(crowd, refID), " FOR UPDATE NOWAIT"))
	}

	add(dueKey, "window", d.due(row.Window{Tags: []string{"a"}, From: now, To: now.Add(time.Hour), Limit: 10}))
	add(dueKey, "window of a share", d.due(row.Window{
		Tags: []string{"a", "b"}, From: now, To: now.Add(time.Hour), Limit: 10,
		Share: &row.Share{1, 2, 3},
	}))
	add(dueKey, "next page", d.due(row.Window{Tags: []string{"a", "b"}, From: now, AfterID: 5, To: now.Add(time.Hour),
		Limit: 10}))
	add(dueKey, "window of many tags", d.due(row.Window{
		Tags: plannedTags, From: now, To: now.Add(time.Second), Limit: 10}))
	add(dueKey, "backlog", d.due(row.Window{Tags: []string{"big", "b"}, To: now.Add(time.Hour), Limit: 10}))
	add(dueKey, "backlog, next page", d.due(row.Window{
		Tags: []string{"big"}, AfterID: 5, To: now.Add(time.Hour), Limit: 10}))
	add(dueKey, "expired", d.expired(plannedTags, 10))
	add(dueKey, "orphans", d.orphans(plannedTags, []int64{someone.Process}, 10))
	add(dueKey, "oldest per tag", clause{d.oldest, []any{int64(row.Completed)}})
	add(dueKey, "oldest pending per tag", clause{d.oldest, []any{int64(row.Pending)}})
	add(dueKey, "backlog of a tag", d.due(row.Window{
		Tags: []string{"big"}, From: row.MinTime, To: now.Add(time.Hour), Limit: 1000}))
	add(dueKey, "purgeable", d.purgeable(row.Completed, "big", now, nil, 10))
	add(dueKey, "purgeable beside locked tasks", d.purgeable(row.Completed, "big", now, []int64{7, 8}, 10))
	add(dueKey, "lateness", d.lateness([]string{"a", "big"}, 0, 10))
	add(dueKey, "lateness of a window", d.lateness([]string{"big"}, now, 10_000))
	add(dueKey, "lateness of a short window", d.lateness([]string{"big"}, now.Add(8*time.Hour), 10_000))
	grid := row.DueGrid{Tags: []string{"big", "t3"}, Now: now.Add(time.Second), Start: now, Step: time.Minute,
		Steps: 60}
	add(dueKey, "due by minute", d.countDue(d, grid, 100))
	if d.estimates {
		add(dueKey, "estimate of what is due", d.estimateDue(grid))
	}
	grid.Tags, grid.Steps = plannedTags, 0
	add(dueKey, "overdue", d.countDue(d, grid, 100))
	add(activeKey, "lock by key", d.lockActive(row.TagKey{Tag: "a", Key: "k"}))
	add(activeKey, "find by key", d.findActive([]row.TagKey{{Tag: "a", Key: "k"}, {Tag: "b", Key: "k"}}))
	return append(all, plannedLists(d)...)
}

// plannedLists is plannedStatements for what people ask.
func plannedLists(d dialect) (all plan) {
	now, add := plannedTime, all.add
	for name, span := range map[string]row.Span{
		"places":           {Status: row.Pending},
		"places of a span": {Status: row.Completed, From: now, To: now.Add(time.Hour)},
		"places of a page": {Status: row.Pending, After: &row.Place{Due: now, ID: 7}},
		"places of a page of a span": {Status: row.Failed, After: &row.Place{Due: now.Add(time.Second), ID: 7},
			From: now, To: now.Add(time.Hour)},
		"places of a page without due times": {Status: row.Pending, After: &row.Place{ID: 7}},
	} {
		span.Tag = "big"
		for _, span.Down = range []bool{false, true} {
			if span.Down {
				name += ", downwards"
			}
			for i, branch := range d.places(0, span, 101) {
				add(dueKey, fmt.Sprint(name, ", range ", i+1), branch)
			}
		}
	}
	for n, span := range []row.Span{
		{Status: row.Pending}, {Status: row.Pending, Down: true},
		{Status: row.Pending, After: &row.Place{Due: now, ID: 7}},
		{Status: row.Failed, From: now, To: now.Add(time.Hour), Down: true, After: &row.Place{Due: now + 1, ID: 7}},
	} {
		for i, query := range d.firstDue(span) {
			add(dueKey, fmt.Sprint("first of each tag, span ", n+1, ", query ", i+1), query)
		}
	}
	ids := make([]int64, 1000)
	for i := range ids {
		ids[i] = int64(i) + 1
	}
	add(dueKey, "places of several tags",
		unionAll(append(d.places(0, row.Span{Tag: "a"}, 10), d.places(1, row.Span{Tag: "big"}, 10)...)))
	add(primary, "newest", d.newest(1<<62, 100))
	add(primary, "match", d.match(ids, row.Match{Status: new(row.Failed), Tag: "a", Key: "k", From: now, To: now + 1,
		LateBy: time.Second, LateAt: now, Error: "refused", CreatedBy: now}, true))
	add(primary, "failures", d.failures(ids))
	add(dueKey, "counts",
		unionAll([]clause{d.count(0, row.Pair{Tag: "a"}, 1000), d.count(1, row.Pair{Tag: "big"}, 1000)}))
	slices.SortFunc(all, func(a, b planned) int { return strings.Compare(a.name, b.name) })
	return all
}

// plannedScheduleStatements is plannedStatements for schedules and their runs.
func plannedScheduleStatements(d dialect) (all plan) {
	at, add := plannedTime, all.add
	s := &row.Schedule{ID: 7, Version: 3, Name: "s7", Next: at, Look: at}
	run := func(tick row.Time) row.ScheduleRun {
		return row.ScheduleRun{ScheduleID: 7, Tick: tick, Outcome: row.OutcomeFailed}
	}
	add(primary, "progress of a schedule", d.updateSchedule(row.WriteProgress, s))
	add(primary, "definition of a schedule", d.updateSchedule(row.WriteDefinition, s))
	add(primary, "delete of a schedule", d.deleteSchedule(s))
	add(lookKey, "look at schedules", d.lookAt(at, 0, 0, 200))
	add(lookKey, "look at schedules, next page", d.lookAt(at.Add(time.Hour), at, 7, 200))
	add(lookKey, "cursors of schedules", d.upcoming(at.Add(time.Hour), 200))
	add(nameKey, "all schedules", d.schedules(row.ScheduleFilter{Limit: 10}))
	add(nameKey, "schedules by name", d.schedules(row.ScheduleFilter{Names: []string{"s7", "s8"}, Limit: 10}))
	add(nameKey, "schedules by prefix", d.schedules(row.ScheduleFilter{Prefix: "s7", AfterName: "s71", Limit: 10}))
	add(nameKey, "schedules of an owner", d.schedules(row.ScheduleFilter{Owner: "o", Limit: 10}))
	add(nameKey, "schedules of a tag", d.schedules(row.ScheduleFilter{Tag: "a", Limit: 10}))
	add(primary, "end of a run", d.endRun(run(at)))
	add(primary, "delete of all runs", d.deleteRuns(7))
	add(outcomeKey, "open runs", d.openRuns([]int64{7, 8, 9}, 10))
	add(primary, "runs", d.runs(7, 0, 10))
	add(primary, "runs, next page", d.runs(7, at.Add(time.Minute), 10))
	add(primary, "first run beyond those to keep", d.firstBeyond(7, at.Add(time.Minute), 10))
	add(primary, "runs to trim", d.trimmable(run(at.Add(time.Minute)), nil, 10))
	add(primary, "trim of one run", d.trimRuns([]string{isRun(run(at))}))
	add(primary, "trim of runs", d.trimRuns([]string{isRun(run(at)), isRun(run(at + 1)), isRun(run(at + 2))}))
	return all
}

// plannedRollupStatements is plannedStatements for lateness and results over time.
func plannedRollupStatements(d dialect) (all plan) {
	at, add := plannedTime, all.add
	add(primary, "series of all tags", d.rollups(row.SpanMinute, []string{row.EveryTag}, at, at.Add(time.Hour)))
	add(primary, "series of a tag", d.rollups(row.SpanHour, []string{"t7"}, at, at.Add(720*time.Hour)))
	add(primary, "series of each tag", d.rollups(row.SpanMinute, nil, at, at.Add(time.Hour)))
	add(primary, "series of many tags", d.rollups(row.SpanMinute, plannedTags, at, at.Add(time.Hour)))
	add(primary, "marks", d.rollups(row.SpanMark, nil, at, at.Add(time.Hour)))
	add(primary, "old rollups", d.oldRollups(row.SpanMinute, at.Add(time.Hour), nil, 10))
	add(primary, "delete of old rollups", d.deleteRollups(row.SpanMinute, at))
	return all
}

// plannedAuditStatements is plannedStatements for the audit log.
func plannedAuditStatements(d dialect) (all plan) {
	at, add := plannedTime, all.add
	add(actionKey, "bulk changes", d.auditEntries("bulk.cancel", 7, 10))
	add(primary, "progress of a bulk change", d.reportAudit(7, 500, "{}"))
	add(primary, "stop of a bulk change", d.stopAudit(7))
	add(primary, "whether a bulk change is to stop", d.stopAsked(7))
	add(primary, "end of an act", d.endAudit(7, row.AuditEnd{Outcome: report.AuditDone}))
	add(primary, "entries of the audit log", d.auditEntries("", 7, 10))
	add(primary, "old entries of the audit log", d.oldestAudit(nil, 10))
	add(primary, "delete of old entries of the audit log", d.purgeAudit([]int64{7, 8}, at))
	return all
}

// Plan says how a statement enters the table of tasks, or a table of schedules.
type Plan struct {
	Statement string   // its name
	Want      string   // the index that it should enter by
	Entered   []string // the indexes that it enters by, each once; "" is a scan; empty: the database does not say
}

// Good reports whether the statement enters by its index alone.
func (p Plan) Good() bool { return len(p.Entered) == 0 || slices.Equal(p.Entered, []string{p.Want}) }

// Plans asks the database how it would run the engine's statements. It runs none of them. A statement whose index is
// unusable is left out.
func (i Inspector) Plans(ctx context.Context, unusable []Unusable) ([]Plan, error) {
	var plans []Plan
	d := i.s.dialect
	for _, p := range slices.Concat(plannedScheduleStatements(d), plannedRollupStatements(d), plannedAuditStatements(d),
		plannedStatements(d)) {
		if slices.ContainsFunc(unusable, func(u Unusable) bool { return u.Name == p.key }) {
			continue
		}
		entered, _, err := d.explain(ctx, i.s.db, p)
		if err != nil {
			return nil, classify("explain the statement "+p.name, err)
		}
		plans = append(plans, Plan{Statement: p.name, Want: p.key, Entered: entered})
	}
	return plans, nil
}
