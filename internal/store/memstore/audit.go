package memstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

type audit struct {
	entries []row.AuditEntry // ordered by id
	last    int64            // id
}

// BeginAudit implements [store.Auditor].
func (s *Store) BeginAudit(ctx context.Context, e row.AuditEntry) (int64, error) {
	return under(ctx, s, "begin an entry of the audit log", func() int64 {
		s.audit.last++
		e.ID, e.Begin, e.AuditEnd = s.audit.last, s.now(), row.AuditEnd{}
		e.Bulk, e.Seen, e.Stop = "", 0, 0
		s.audit.entries = append(s.audit.entries, e)
		return e.ID
	})
}

// EndAudit implements [store.Auditor].
func (s *Store) EndAudit(ctx context.Context, id int64, end row.AuditEnd) error {
	_, err := s.underWay(ctx, "end an entry of the audit log", id, func(e *row.AuditEntry) {
		end.End = s.now()
		e.AuditEnd = end
	})
	return err
}

// underWay changes the entry, if it has no end, and returns it.
func (s *Store) underWay(ctx context.Context, op string, id int64, change func(*row.AuditEntry)) (
	row.AuditEntry, error) {
	return under(ctx, s, op, func() (is row.AuditEntry) {
		for i := range s.audit.entries {
			if e := &s.audit.entries[i]; e.ID == id && e.Outcome == "" {
				change(e)
				is = *e
			}
		}
		return is
	})
}

// ReportAudit implements [store.Auditor].
func (s *Store) ReportAudit(ctx context.Context, id, tasks int64, bulk string) (stop bool, err error) {
	is, err := s.underWay(ctx, "report a bulk change", id, func(e *row.AuditEntry) {
		e.Tasks, e.Bulk, e.Seen = tasks, bulk, s.now()
	})
	return is.Stop != 0, err
}

// StopAudit implements [store.Auditor].
func (s *Store) StopAudit(ctx context.Context, id int64) error {
	_, err := s.underWay(ctx, "stop a bulk change", id, func(e *row.AuditEntry) { e.Stop = cmp.Or(e.Stop, s.now()) })
	return err
}

// AuditEntries implements [store.Auditor].
func (s *Store) AuditEntries(ctx context.Context, action string, below int64, limit int) ([]row.AuditEntry, error) {
	return under(ctx, s, "read the audit log", func() (found []row.AuditEntry) {
		for _, e := range slices.Backward(s.audit.entries) {
			if e.ID < below && len(found) < limit && (action == "" || e.Action == action) {
				found = append(found, e)
			}
		}
		return found
	})
}

// PurgeAudit implements [store.Auditor].
func (s *Store) PurgeAudit(ctx context.Context, before row.Time, limit int) (int, error) {
	return under(ctx, s, "purge the audit log", func() int {
		all := s.audit.entries
		looked := all[:min(limit, len(all))]
		kept := slices.DeleteFunc(slices.Clone(looked), func(e row.AuditEntry) bool { return e.Begin < before })
		s.audit.entries = slices.Concat(kept, all[len(looked):])
		return len(looked) - len(kept)
	})
}
