package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

// query is a read with its arguments.
type query struct {
	sql  string
	args []any
}

const (
	fromDue = " FROM delay_task_message FORCE INDEX (" + dueKey + ")"
	wanted  = "SELECT id, version, tag, due_time, priority, crash_count" + fromDue

	// branches is how many tags the store reads in one query when a window is open to the past, or when there are that few.
	branches = 32
)

// window reads pending rows of the tags, each candidate in the form that suits its index best;
// a zero from reads from the beginning.
func (c candidate) window(tags []string, from, to row.Time, limit int) []query {
	if !c.perTag || (len(tags) > branches && from != 0) {
		return []query{c.branch("tag IN ("+marks(len(tags))+")", anys(tags), from, to, limit)}
	}
	var reads []query
	for group := range slices.Chunk(tags, branches) {
		var union query
		for i, tag := range group {
			b := c.branch("tag = ?", []any{tag}, from, to, limit)
			if i > 0 {
				union.sql += " UNION ALL "
			}
			union.sql += fmt.Sprintf("SELECT * FROM (%s) AS t%d", b.sql, i)
			union.args = append(union.args, b.args...)
		}
		reads = append(reads, union)
	}
	return reads
}

func (c candidate) branch(tags string, args []any, from, to row.Time, limit int) query {
	where := fmt.Sprintf(" WHERE status = %d AND %s AND %s < ?", row.Pending, tags, c.due)
	args = append(args, to)
	if from != 0 {
		where += " AND " + c.due + " >= ?"
		args = append(args, from)
	}
	return query{wanted + where + fmt.Sprintf(" ORDER BY %s, id LIMIT %d", c.due, limit), args}
}

// expired reads ended leases of any tag.
func (c candidate) expired(now row.Time, limit int) query {
	tail := fmt.Sprintf(" ORDER BY t.due_time, t.id LIMIT %d", limit)
	where := fmt.Sprintf(" t.status = %d AND t.due_time < ?", row.Executing)
	table := " delay_task_message t FORCE INDEX (" + dueKey + ")"
	switch {
	case c.byStatus || c.nullWhenFinal:
		return query{"SELECT t.id, t.version, t.executor FROM" + table + " WHERE" + where + tail, []any{now}}
	case c.perTag:
		return query{"SELECT t.id, t.version, t.executor" +
			" FROM (SELECT DISTINCT tag FROM delay_task_message) g STRAIGHT_JOIN" + table +
			" ON t.tag = g.tag AND" + where + tail, []any{now}}
	default:
		return query{"SELECT t.id, t.version, t.executor FROM" + table + " WHERE t." + c.due + " < ? AND" + where + tail,
			[]any{now, now}}
	}
}

// oldest reads the tags that have completed rows, for a purge that goes tag by tag; empty for one that does not.
func (c candidate) oldest() string {
	switch {
	case !c.perTag:
		return ""
	case c.byStatus:
		return fmt.Sprintf("SELECT tag, MIN(due_time) FROM delay_task_message WHERE status = %d GROUP BY status, tag",
			row.Completed)
	default:
		return fmt.Sprintf("SELECT tag, MIN(due_time) FROM delay_task_message WHERE status = %d GROUP BY tag", row.Completed)
	}
}

// purgeable reads the ids of completed rows that finished before the bound, of one tag when the purge goes tag by tag.
func (c candidate) purgeable(tag string, before row.Time, limit int) query {
	where := fmt.Sprintf(" WHERE status = %d AND ", row.Completed)
	switch {
	case c.perTag:
		return query{"SELECT id" + fromDue + where +
			fmt.Sprintf("tag = ? AND due_time < ? ORDER BY due_time, id LIMIT %d", limit), []any{tag, before}}
	case c.nullWhenFinal: // no index leads to finished rows: they are met in the order of their ids
		return query{"SELECT id FROM delay_task_message FORCE INDEX (PRIMARY)" + where +
			fmt.Sprintf("finish_time < ? ORDER BY id LIMIT %d", limit), []any{before}}
	default:
		return query{"SELECT id" + fromDue + where +
			fmt.Sprintf("%s < ? ORDER BY %s, id LIMIT %d", c.due, c.due, limit), []any{before}}
	}
}

func marks(n int) string { return repeat(n, "?") }

// repeat lists n placeholders, or groups of them.
func repeat(n int, mark string) string { return strings.TrimSuffix(strings.Repeat(mark+", ", n), ", ") }

func anys[T any](items []T) []any {
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = item
	}
	return all
}
