package store

import (
	"context"
	"errors"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// ErrReadOnly is the cause of the errors of a store that [ReadOnly] has returned.
var ErrReadOnly = errors.New("delaytask: this scheduler only reads")

// ReadOnly returns a store that reads from s, and writes nothing. It counts a node as joined, so that an engine can be
// made on it, and keeps no row of it. Other writes return [row.ClassOperator], with [ErrReadOnly] as the cause.
func ReadOnly(s Store) Store { return readOnly{s} }

type readOnly struct{ Store }

// Under returns the store that one of [ReadOnly] reads from, and any other store as it is.
func Under(s Store) Store {
	if r, reads := s.(readOnly); reads {
		return r.Store
	}
	return s
}

func refused(op string) error {
	const hint = "connect to a server that can be written to"
	return &row.Error{Class: row.ClassOperator, Op: op, Hint: hint, Err: ErrReadOnly}
}

func (readOnly) Insert(context.Context, Tx, []row.Row) error { return refused("save tasks") }

func (readOnly) LockActive(context.Context, Tx, row.TagKey) ([]row.Row, []row.Broken, error) {
	return nil, nil, refused("lock a task")
}

func (readOnly) Claim(context.Context, row.Claim) (row.Claimed, error) {
	return row.Claimed{}, refused("claim tasks")
}

func (readOnly) Renew(context.Context, []row.Lease) ([]row.State, error) {
	return nil, refused("renew leases")
}

func (readOnly) Update(context.Context, Tx, []row.Change) (int, error) {
	return 0, refused("change tasks")
}

func (readOnly) Adopt(context.Context, []row.Ref) error { return refused("adopt tasks") }

func (readOnly) Discard(context.Context, []row.Broken) (int, error) {
	return 0, refused("discard tasks")
}

func (readOnly) Purge(context.Context, row.Status, []string, row.Time, int) (int, []string, error) {
	return 0, nil, refused("purge tasks")
}

func (readOnly) Renumber(context.Context, int64, func() int64, int) (int, string, error) {
	return 0, "", refused("give tasks other ids")
}

func (readOnly) SetTag(context.Context, row.TagState) error { return refused("store a tag") }

func (readOnly) Join(context.Context, row.Node, time.Duration) (bool, error) { return true, nil }

func (readOnly) Beat(context.Context, row.Node) (bool, error) { return true, nil }

func (readOnly) Leave(context.Context, []string) error { return nil }

func (readOnly) Decide(context.Context, []row.Decision) (bool, error) {
	return false, refused("decide about schedules")
}

func (readOnly) TrimRuns(context.Context, int64, row.Time, int, int) (int, error) {
	return 0, refused("trim the runs of a schedule")
}

func (readOnly) PutRollups(context.Context, []row.Rollup) error { return refused("write rollups") }

func (readOnly) TrimRollups(context.Context, row.RollupSpan, row.Time, int) (int, error) {
	return 0, refused("delete old rollups")
}

func (readOnly) BeginAudit(context.Context, row.AuditEntry) (int64, error) {
	return 0, refused("begin an entry of the audit log")
}

func (readOnly) EndAudit(context.Context, int64, row.AuditEnd) error {
	return refused("end an entry of the audit log")
}

func (readOnly) ReportAudit(context.Context, int64, int64, string) (bool, error) {
	return false, refused("report a bulk change")
}

func (readOnly) StopAudit(context.Context, int64) error { return refused("stop a bulk change") }

func (readOnly) Introduce(context.Context, row.Process) error { return nil }

func (readOnly) PurgeProcesses(context.Context, row.Time, int) (int, error) {
	return 0, refused("purge processes")
}

func (readOnly) PurgeAudit(context.Context, row.Time, int) (int, error) {
	return 0, refused("purge the audit log")
}
