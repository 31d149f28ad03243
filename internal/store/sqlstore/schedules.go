package sqlstore

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/delaytask/delaytask/internal/row"
)

// LookAt implements [store.Schedules].
func (s *Store) LookAt(ctx context.Context, until, from row.Time, afterID int64, limit int) (
	[]row.Schedule, []row.Broken, error) {
	return s.readSchedules(ctx, "look at schedules", s.dialect.lookAt(until, from, afterID, limit))
}

// Schedules implements [store.Schedules].
func (s *Store) Schedules(ctx context.Context, f row.ScheduleFilter) ([]row.Schedule, []row.Broken, error) {
	if f.Limit <= 0 || f.Names != nil && len(f.Names) == 0 {
		return nil, nil, nil
	}
	return s.readSchedules(ctx, "list schedules", s.dialect.schedules(f))
}

func (s *Store) readSchedules(ctx context.Context, op string, query clause) (
	sound []row.Schedule, broken []row.Broken, err error) {
	err = read(ctx, s.db, query, schedules, func(f *found[row.Schedule]) {
		if f.err != nil {
			broken = append(broken, brokenSchedule(f.row, f.err))
			return
		}
		sound = append(sound, f.row)
	})
	return sound, broken, classify(op, err)
}

func (d dialect) lookAt(until, from row.Time, afterID int64, limit int) clause {
	where, args := "t.look_time <= ?", []any{until}
	if !from.IsZero() {
		where += " AND t.look_time >= ? AND (t.look_time > ? OR t.id > ?)"
		args = append(args, from, from, afterID)
	}
	return clause{"SELECT " + withBodies(d, schedules.columns, true) + " FROM " + scheduleTable + " AS t" +
		fmt.Sprintf(d.by, lookKey) + " WHERE " + where +
		" ORDER BY t.look_time, t.id LIMIT " + fmt.Sprint(max(limit, 0)), args}
}

// schedules enters by the index of names in every case. Equal names, that differ only in spaces at their ends, cannot
// be stored, but can be asked for.
func (d dialect) schedules(f row.ScheduleFilter) clause {
	where, args := []string{"t.name > " + d.bindName}, []any{f.AfterName}
	and := func(condition string, more ...any) {
		where = append(where, condition)
		args = append(args, more...)
	}
	if f.Names != nil {
		and("t.name IN ("+marks(len(f.Names), d.bindName)+")", anys(f.Names)...)
		and(fmt.Sprintf(d.readText, "t.name")+" IN ("+marks(len(f.Names), d.bindText)+")", anys(f.Names)...)
	}
	if f.Prefix != "" {
		and("t.name >= "+d.bindName, f.Prefix)
		if end := afterPrefix(f.Prefix); end != "" {
			and("t.name < "+d.bindName, end)
		}
	}
	if f.Owner != "" {
		and(fmt.Sprintf(d.sameText, "t.owner"), f.Owner)
	}
	if f.Tag != "" {
		and(fmt.Sprintf(d.sameText, "t.tag"), f.Tag)
	}
	return clause{"SELECT " + withBodies(d, schedules.columns, !f.NoBodies) + " FROM " + scheduleTable + " AS t" +
		fmt.Sprintf(d.by, nameKey) + " WHERE " + strings.Join(where, " AND ") +
		" ORDER BY t.name LIMIT " + fmt.Sprint(f.Limit), args}
}

// afterPrefix returns the first text after all that begin with the prefix, or "". Code points and the bytes of UTF-8
// sort alike.
func afterPrefix(prefix string) string {
	for prefix != "" {
		last, size := utf8.DecodeLastRuneInString(prefix)
		prefix = prefix[:len(prefix)-size]
		if last == utf8.MaxRune {
			continue
		}
		if last++; !utf8.ValidRune(last) {
			last = 0xE000 // after the surrogates, which are no characters
		}
		return prefix + string(last)
	}
	return ""
}

// OpenRuns implements [store.Schedules].
func (s *Store) OpenRuns(ctx context.Context, schedules []int64, limit int) ([]row.ScheduleRun, error) {
	if len(schedules) == 0 || limit <= 0 {
		return nil, nil
	}
	return s.readRuns(ctx, "read open runs of schedules", s.dialect.openRuns(schedules, limit))
}

// Runs implements [store.Schedules].
func (s *Store) Runs(ctx context.Context, schedule int64, before row.Time, limit int) ([]row.ScheduleRun, error) {
	return s.readRuns(ctx, "read runs of a schedule", s.dialect.runs(schedule, before, limit))
}

func (s *Store) readRuns(ctx context.Context, op string, query clause) ([]row.ScheduleRun, error) {
	runs, _, err := readAll(ctx, s.db, query, scheduleRuns)
	return runs, classify(op, err)
}

func (d dialect) openRuns(schedules []int64, limit int) clause {
	ids := idList(row.Distinct(schedules))
	return clause{"SELECT " + scheduleRuns.list(d, "") + " FROM " + runTable + " AS t" + fmt.Sprintf(d.by, outcomeKey) +
		fmt.Sprintf(" WHERE t.outcome = %d AND t.schedule_id IN (%s)", row.OutcomeOpen, ids) +
		" ORDER BY t.schedule_id, t.tick, t.cause LIMIT ?", []any{limit}}
}

func (d dialect) runs(schedule int64, before row.Time, limit int) clause {
	where, args := fmt.Sprintf("t.schedule_id = %d", schedule), []any{}
	if !before.IsZero() {
		where, args = where+" AND t.tick < ?", []any{before}
	}
	return clause{"SELECT " + scheduleRuns.list(d, "") + " FROM " + runTable + " AS t" + d.byID + " WHERE " + where +
		" ORDER BY t.tick DESC, t.cause DESC LIMIT " + fmt.Sprint(max(limit, 0)), args}
}

// TrimRuns implements [store.Schedules]. Reads find what is to be deleted, so that the DELETE locks no other run.
func (s *Store) TrimRuns(ctx context.Context, schedule int64, before row.Time, keep, limit int) (int, error) {
	const op = "trim the runs of a schedule"
	if limit <= 0 {
		return 0, nil
	}
	bound, err := s.readRuns(ctx, op, s.dialect.firstBeyond(schedule, before, keep))
	if err != nil || len(bound) == 0 {
		return 0, err
	}
	at := place{runTable, fmt.Sprint(schedule)}
	return purge(ctx, s, purging[string]{
		op: op, lane: chores,
		old: func(ctx context.Context) (map[string]place, error) {
			held, all := heldAt[string](&s.held, at)
			if all {
				return nil, nil
			}
			runs, err := s.readRuns(ctx, op, s.dialect.trimmable(bound[0], held, limit))
			old := make(map[string]place, len(runs))
			for _, r := range runs {
				old[isRun(r)] = at
			}
			return old, err
		},
		names: func(runs []string, lock string) clause {
			return s.own.namesIn(runTable, anyRun, strings.Join(runs, " OR "), lock)
		},
		delete: s.own.trimRuns,
	})
}

// firstBeyond finds the newest run before the moment that is not to be kept.
func (d dialect) firstBeyond(schedule int64, before row.Time, keep int) clause {
	query := d.runs(schedule, before, 1)
	query.sql += fmt.Sprint(" OFFSET ", max(keep, 0))
	return query
}

func (d dialect) trimmable(from row.ScheduleRun, held []string, limit int) clause {
	without := ""
	if len(held) > 0 {
		without = " AND NOT (" + strings.Join(held, " OR ") + ")"
	}
	return clause{fmt.Sprintf("SELECT %s FROM %s AS t%s WHERE t.schedule_id = %d AND t.outcome <> %d",
		scheduleRuns.list(d, ""), runTable, d.byID, from.ScheduleID, row.OutcomeOpen) +
		" AND t.tick <= ? AND (t.tick < ? OR t.cause <= ?)" + without + " ORDER BY t.tick, t.cause LIMIT ?",
		[]any{from.Tick, from.Tick, int64(from.Cause), limit}}
}

// trimRuns deletes runs that [isRun] names.
func (d dialect) trimRuns(runs []string) clause {
	return d.deleteRows(runTable, fmt.Sprintf("t.outcome <> %d AND (%s)", row.OutcomeOpen, strings.Join(runs, " OR ")))
}

// Tags implements [store.Nodes].
func (s *Store) Tags(ctx context.Context) (tags []row.TagState, look row.Time, err error) {
	var r tagReader
	err = scan(ctx, s.db, clause{sql: s.dialect.tagsAndLook()}, r.add, r.fields()...)
	return r.sorted(), r.look, classify("read tags", err)
}

// tagsAndLook reads the smallest look_time in a row of its own, so that it costs no further statement.
func (d dialect) tagsAndLook() string {
	return "SELECT " + d.tagStates() + ", NULL AS look_time FROM " + tagTable +
		" UNION ALL SELECT NULL, NULL, NULL, (" + firstLook + ")"
}

func (d dialect) tagStates() string { return d.text("tag") + ", paused, " + d.text("reason") }

const firstLook = "SELECT CAST(MIN(look_time) AS CHAR) FROM " + scheduleTable

// tagReader collects the states of tags, and the smallest look_time in a row without a tag.
type tagReader struct {
	tag, paused, reason, stored *string // paused is any number that was written by hand
	tags                        []row.TagState
	look                        row.Time
}

func (r *tagReader) fields() []any { return []any{&r.tag, &r.paused, &r.reason, &r.stored} }

func (r *tagReader) add() {
	switch {
	case r.tag != nil:
		paused := r.paused != nil && *r.paused != "0"
		r.tags = append(r.tags, row.TagState{Tag: *r.tag, Paused: paused, Reason: *r.reason})
	case r.stored != nil && r.look.Scan(*r.stored) != nil:
		r.look = row.MinTime // garbage hides what comes after it, so the caller has to look
	}
}

func (r *tagReader) sorted() []row.TagState {
	slices.SortFunc(r.tags, func(a, b row.TagState) int { return strings.Compare(a.Tag, b.Tag) })
	return r.tags
}
