package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

const (
	auditTable = "delay_task_audit"
	actionKey  = "delay_task_audit_action"
)

var auditColumns = []string{
	"id", "create_time", "who", "via", "action", "target", "tag", "detail", "tasks", "outcome", "error", "finish_time",
	"bulk", "stop_time", "seen_time",
}

// BeginAudit implements [store.Auditor]. Of what may have been stored nothing is repeated: an act has one entry.
func (s *Store) BeginAudit(ctx context.Context, e row.AuditEntry) (id int64, err error) {
	query, args := s.own.beginAudit(e)
	for range repeats {
		err = s.save.do(ctx, "begin an entry of the audit log", func(ctx context.Context, conn *sql.Conn) error {
			result, err := conn.ExecContext(ctx, query, args...)
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

func (d dialect) beginAudit(e row.AuditEntry) (string, []any) {
	return "INSERT INTO " + auditTable + " (create_time, who, via, action, target, tag, detail) VALUES (" + d.now +
			", " + marks(6, d.bindText) + ")",
		[]any{e.Who, e.Via, e.Action, e.Target, e.Tag, e.Detail}
}

// EndAudit implements [store.Auditor].
func (s *Store) EndAudit(ctx context.Context, id int64, end row.AuditEnd) error {
	query, args := s.own.endAudit(id, end)
	return repeat(ctx, func() error {
		_, err := s.save.execute(ctx, "end an entry of the audit log", query, args)
		return err
	})
}

func (d dialect) endAudit(id int64, end row.AuditEnd) (string, []any) {
	return "UPDATE " + auditTable + " AS t" + d.byID + " SET outcome = " + d.bindText + ", tasks = ?, error = " +
			d.bindText + ", finish_time = " + d.now + fmt.Sprintf(" WHERE t.id = %d AND t.outcome = ''", id),
		[]any{string(end.Outcome), end.Tasks, end.Error}
}

// ReportAudit implements [store.Auditor].
func (s *Store) ReportAudit(ctx context.Context, id, tasks int64, bulk string) (stop bool, err error) {
	query, args := s.own.reportAudit(id, tasks, bulk)
	err = s.keep.do(ctx, "report a bulk change", func(ctx context.Context, conn *sql.Conn) error {
		if _, err := execute(ctx, conn, query, args); err != nil {
			return err
		}
		return scan(ctx, conn, s.own.stopAsked(id), nil, func(r *auditRecord) error {
			e := r.entry()
			stop = e.Stop != 0 && e.Outcome == ""
			return nil
		})
	})
	return stop, err
}

func (d dialect) reportAudit(id, tasks int64, bulk string) (string, []any) {
	return "UPDATE " + auditTable + " AS t" + d.byID + " SET tasks = ?, bulk = " + d.bindText +
		", seen_time = " + d.now + fmt.Sprintf(" WHERE t.id = %d AND t.outcome = ''", id), []any{tasks, bulk}
}

// stopAsked selects whether an act is under way, and whether a caller has asked to stop it.
func (d dialect) stopAsked(id int64) string {
	return "SELECT t.id, " + d.text("outcome") + ", " + d.time("stop_time") + " FROM " + auditTable + " AS t" + d.byID +
		fmt.Sprintf(" WHERE t.id = %d", id)
}

// StopAudit implements [store.Auditor].
func (s *Store) StopAudit(ctx context.Context, id int64) error {
	return repeat(ctx, func() error {
		_, err := s.keep.execute(ctx, "stop a bulk change", s.own.stopAudit(id), nil)
		return err
	})
}

func (d dialect) stopAudit(id int64) string {
	return "UPDATE " + auditTable + " AS t" + d.byID + " SET stop_time = " + d.now +
		fmt.Sprintf(" WHERE t.id = %d AND t.outcome = '' AND t.stop_time IS NULL", id)
}

// auditRecord is a row of delay_task_audit.
type auditRecord struct {
	ID      sql.RawBytes `db:"id"`
	Begin   sql.RawBytes `db:"create_time"`
	Who     sql.RawBytes `db:"who"`
	Via     sql.RawBytes `db:"via"`
	Action  sql.RawBytes `db:"action"`
	Target  sql.RawBytes `db:"target"`
	Tag     sql.RawBytes `db:"tag"`
	Detail  sql.RawBytes `db:"detail"`
	Tasks   sql.RawBytes `db:"tasks"`
	Outcome sql.RawBytes `db:"outcome"`
	Error   sql.RawBytes `db:"error"`
	End     sql.RawBytes `db:"finish_time"`
	Bulk    sql.RawBytes `db:"bulk"`
	Stop    sql.RawBytes `db:"stop_time"`
	Seen    sql.RawBytes `db:"seen_time"`
}

// entry decodes what can be read and leaves the rest zero: one broken row must not hide the others.
func (r *auditRecord) entry() row.AuditEntry {
	var d decoder
	e := row.AuditEntry{
		ID: d.int("id", r.ID, 1, math.MaxInt64), Begin: d.time("create_time", r.Begin), Who: string(r.Who),
		Via: string(r.Via), Action: string(r.Action), Target: string(r.Target), Tag: string(r.Tag),
		Detail: string(r.Detail),
		Bulk:   string(r.Bulk), Stop: d.time("stop_time", r.Stop), Seen: d.time("seen_time", r.Seen),
	}
	e.Outcome, e.Error = row.AuditOutcome(r.Outcome), string(r.Error)
	if r.Tasks != nil {
		e.Tasks = d.int("tasks", r.Tasks, 0, math.MaxInt64)
	}
	e.End = d.time("finish_time", r.End)
	return e
}

// AuditEntries implements [store.Auditor].
func (s *Store) AuditEntries(ctx context.Context, below int64, limit int) (found []row.AuditEntry, err error) {
	if limit <= 0 {
		return nil, nil
	}
	query, args := s.dialect.auditEntries(below, limit)
	return s.readAudit(ctx, "read the audit log", query, args)
}

// AuditEntriesOf implements [store.Auditor].
func (s *Store) AuditEntriesOf(ctx context.Context, action string, below int64, limit int) ([]row.AuditEntry, error) {
	if limit <= 0 {
		return nil, nil
	}
	query, args := s.dialect.auditEntriesOf(action, below, limit)
	return s.readAudit(ctx, "read the bulk changes of the audit log", query, args)
}

func (s *Store) readAudit(ctx context.Context, op, query string, args []any) (found []row.AuditEntry, err error) {
	err = scan(ctx, s.db, query, args, func(r *auditRecord) error {
		found = append(found, r.entry())
		return nil
	})
	return found, classify(op, err)
}

func (d dialect) auditEntries(below int64, limit int) (string, []any) {
	return "SELECT " + d.auditList() + " FROM " + auditTable + " AS t" + d.byID +
		fmt.Sprintf(" WHERE t.id < ? ORDER BY t.id DESC LIMIT %d", limit), []any{below}
}

func (d dialect) auditEntriesOf(action string, below int64, limit int) (string, []any) {
	return "SELECT " + d.auditList() + " FROM " + auditTable + " AS t" + fmt.Sprintf(d.by, actionKey) +
		" WHERE t.action = " + d.bindName +
		fmt.Sprintf(" AND t.id < ? ORDER BY t.id DESC LIMIT %d", limit), []any{action, below}
}

func (d dialect) auditList() string {
	columns := []string{
		"t.id", d.time("create_time"), d.text("who"), d.text("via"), d.text("action"), d.text("target"), d.text("tag"),
		d.text("detail"), "t.tasks", d.text("outcome"), d.text("error"), d.time("finish_time"),
		d.text("bulk"), d.time("stop_time"), d.time("seen_time"),
	}
	return strings.Join(columns, ", ")
}

// PurgeAudit implements [store.Auditor].
func (s *Store) PurgeAudit(ctx context.Context, before row.Time, limit int) (deleted int, err error) {
	if limit <= 0 {
		return 0, nil
	}
	err = s.keep.do(ctx, "purge the audit log", func(ctx context.Context, conn *sql.Conn) error {
		var ids []int64
		err := scan(ctx, conn, s.own.oldestAudit(limit), nil, func(r *auditRecord) error {
			if e := r.entry(); e.ID > 0 && e.Begin < before {
				ids = append(ids, e.ID)
			}
			return nil
		})
		if err != nil || len(ids) == 0 {
			return err
		}
		query, args := s.own.purgeAudit(ids, before)
		deleted, err = execute(ctx, conn, query, args)
		return err
	})
	return deleted, err
}

func (d dialect) oldestAudit(limit int) string {
	return "SELECT t.id, " + d.time("create_time") + " FROM " + auditTable + " AS t" + d.byID +
		fmt.Sprintf(" WHERE t.id > 0 ORDER BY t.id LIMIT %d", limit)
}

func (d dialect) purgeAudit(ids []int64, before row.Time) (string, []any) {
	return fmt.Sprintf(d.deleteFrom, auditTable) + " WHERE t.id IN (" + idList(ids) + ") AND t.create_time < ?",
		[]any{before}
}
