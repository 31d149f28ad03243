package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

var audits = newTable(auditTable,
	integer("id", 1, math.MaxInt64, func(e *row.AuditEntry) *int64 { return &e.ID }),
	moment("create_time", func(e *row.AuditEntry) *row.Time { return &e.Begin }),
	chars("who", func(e *row.AuditEntry) *string { return &e.Who }),
	chars("via", func(e *row.AuditEntry) *string { return &e.Via }),
	chars("action", func(e *row.AuditEntry) *string { return &e.Action }),
	chars("target", func(e *row.AuditEntry) *string { return &e.Target }),
	chars("tag", func(e *row.AuditEntry) *string { return &e.Tag }),
	chars("detail", func(e *row.AuditEntry) *string { return &e.Detail }),
	optional("tasks", math.MaxInt64, func(e *row.AuditEntry) *int64 { return &e.Tasks }),
	chars("outcome", func(e *row.AuditEntry) *report.AuditOutcome { return &e.Outcome }),
	chars("error", func(e *row.AuditEntry) *string { return &e.Error }),
	moment("finish_time", func(e *row.AuditEntry) *row.Time { return &e.End }),
	charsOrNull("bulk", func(e *row.AuditEntry) *string { return &e.Bulk }),
	moment("stop_time", func(e *row.AuditEntry) *row.Time { return &e.Stop }),
	moment("seen_time", func(e *row.AuditEntry) *row.Time { return &e.Seen }),
)

// BeginAudit implements [store.Auditor]. Of what may have been stored nothing is repeated: an act has one entry.
func (s *Store) BeginAudit(ctx context.Context, e row.AuditEntry) (id int64, err error) {
	const op = "begin an entry of the audit log"
	d := s.own
	query := "INSERT INTO " + auditTable + " (create_time, who, via, action, target, tag, detail) VALUES (" + d.now +
		", " + marks(6, d.bindText) + ")"
	for range repeats {
		err = s.lanes[apart].do(ctx, op, func(ctx context.Context, conn *sql.Conn) error {
			result, err := conn.ExecContext(ctx, query, e.Who, e.Via, e.Action, e.Target, e.Tag, e.Detail)
			if err == nil {
				id, err = result.LastInsertId()
			}
			return err
		})
		if err == nil || ctx.Err() != nil || row.ClassOf(err) != row.ClassNotApplied {
			break
		}
	}
	return id, err
}

// EndAudit implements [store.Auditor].
func (s *Store) EndAudit(ctx context.Context, id int64, end row.AuditEnd) error {
	query := s.own.endAudit(id, end)
	return repeat(ctx, func() error { return s.lanes[apart].write(ctx, "end an entry of the audit log", query) })
}

func (d dialect) endAudit(id int64, end row.AuditEnd) clause {
	return clause{"UPDATE " + auditTable + " AS t" + d.byID + " SET outcome = " + d.bindText + ", tasks = ?, error = " +
		d.bindText + ", finish_time = " + d.now + fmt.Sprintf(" WHERE t.id = %d AND t.outcome = ''", id),
		[]any{string(end.Outcome), end.Tasks, end.Error}}
}

// ReportAudit implements [store.Auditor].
func (s *Store) ReportAudit(ctx context.Context, id, tasks int64, bulk string) (stop bool, err error) {
	err = s.lanes[chores].do(ctx, "report a bulk change", func(ctx context.Context, conn *sql.Conn) error {
		if _, err := execute(ctx, conn, s.own.reportAudit(id, tasks, bulk)); err != nil {
			return err
		}
		return read(ctx, conn, s.own.stopAsked(id), audits, func(f *found[row.AuditEntry]) {
			stop = f.row.Stop != 0 && f.row.Outcome == ""
		})
	})
	return stop, err
}

func (d dialect) reportAudit(id, tasks int64, bulk string) clause {
	return clause{"UPDATE " + auditTable + " AS t" + d.byID + " SET tasks = ?, bulk = " + d.bindText +
		", seen_time = " + d.now + fmt.Sprintf(" WHERE t.id = %d AND t.outcome = ''", id), []any{tasks, bulk}}
}

// stopAsked selects whether an act is under way, and whether a caller has asked to stop it.
func (d dialect) stopAsked(id int64) clause {
	return clause{sql: "SELECT " + audits.list(d, "t.", "id", "outcome", "stop_time") + " FROM " + auditTable +
		" AS t" + d.byID + fmt.Sprintf(" WHERE t.id = %d", id)}
}

// StopAudit implements [store.Auditor].
func (s *Store) StopAudit(ctx context.Context, id int64) error {
	return repeat(ctx, func() error { return s.lanes[chores].write(ctx, "stop a bulk change", s.own.stopAudit(id)) })
}

func (d dialect) stopAudit(id int64) clause {
	return clause{sql: "UPDATE " + auditTable + " AS t" + d.byID + " SET stop_time = " + d.now +
		fmt.Sprintf(" WHERE t.id = %d AND t.outcome = '' AND t.stop_time IS NULL", id)}
}

// AuditEntries implements [store.Auditor].
func (s *Store) AuditEntries(ctx context.Context, action string, below int64, limit int) ([]row.AuditEntry, error) {
	if limit <= 0 {
		return nil, nil
	}
	entries, _, err := readAll(ctx, s.db, s.dialect.auditEntries(action, below, limit), audits)
	return entries, classify("read the audit log", err)
}

func (d dialect) auditEntries(action string, below int64, limit int) clause {
	hint, of, args := d.byID, "", []any{below}
	if action != "" {
		hint, of, args = fmt.Sprintf(d.by, actionKey), "t.action = "+d.bindName+" AND ", []any{action, below}
	}
	return clause{"SELECT " + audits.list(d, "t.") + " FROM " + auditTable + " AS t" + hint + " WHERE " + of +
		fmt.Sprintf("t.id < ? ORDER BY t.id DESC LIMIT %d", limit), args}
}

// PurgeAudit implements [store.Auditor].
func (s *Store) PurgeAudit(ctx context.Context, before row.Time, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	at := place{table: auditTable}
	return purge(ctx, s, purging[int64]{
		op: "purge the audit log", lane: chores,
		old: func(ctx context.Context) (map[int64]place, error) {
			held, all := heldAt[int64](&s.held, at)
			if all {
				return nil, nil
			}
			old := map[int64]place{}
			err := read(ctx, s.db, s.dialect.oldestAudit(held, limit), audits, func(f *found[row.AuditEntry]) {
				if f.row.ID > 0 && f.row.Begin < before {
					old[f.row.ID] = at
				}
			})
			return old, err
		},
		names:  s.own.ids(auditTable),
		delete: func(ids []int64) clause { return s.own.purgeAudit(ids, before) },
	})
}

func (d dialect) oldestAudit(held []int64, limit int) clause {
	return clause{sql: "SELECT " + audits.list(d, "t.", "id", "create_time") + " FROM " + auditTable + " AS t" +
		d.byID + " WHERE t.id > 0" + without("t.id", idList(held)) + fmt.Sprintf(" ORDER BY t.id LIMIT %d", limit)}
}

func (d dialect) purgeAudit(ids []int64, before row.Time) clause {
	return d.deleteRows(auditTable, "t.id IN ("+idList(ids)+") AND t.create_time < ?", before)
}
