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
func (s *Store) BeginAudit(ctx context.Context, e row.AuditEntry) (id int64, err error) {
	if err := s.enter(ctx, "begin an entry of the audit log"); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	s.audit.last++
	e.ID, e.Begin, e.AuditEnd = s.audit.last, s.now(), row.AuditEnd{}
	e.Bulk, e.Seen, e.Stop = "", 0, 0
	s.audit.entries = append(s.audit.entries, e)
	return e.ID, nil
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
	is row.AuditEntry, err error) {
	if err := s.enter(ctx, op); err != nil {
		return is, err
	}
	defer s.mu.Unlock()
	for i := range s.audit.entries {
		if e := &s.audit.entries[i]; e.ID == id && e.Outcome == "" {
			change(e)
			is = *e
		}
	}
	return is, nil
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
func (s *Store) AuditEntries(ctx context.Context, action string, below int64, limit int) (
	found []row.AuditEntry, err error) {
	if err := s.enter(ctx, "read the audit log"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, e := range slices.Backward(s.audit.entries) {
		if e.ID < below && len(found) < limit && (action == "" || e.Action == action) {
			found = append(found, e)
		}
	}
	return found, nil
}

// PurgeAudit implements [store.Auditor].
func (s *Store) PurgeAudit(ctx context.Context, before row.Time, limit int) (deleted int, err error) {
	if err := s.enter(ctx, "purge the audit log"); err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	all := s.audit.entries
	looked := all[:min(limit, len(all))]
	kept := slices.DeleteFunc(slices.Clone(looked), func(e row.AuditEntry) bool { return e.Begin < before })
	s.audit.entries = slices.Concat(kept, all[len(looked):])
	return len(looked) - len(kept), nil
}
