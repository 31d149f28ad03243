package memstore

import (
	"context"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

// audit is the audit log.
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
	s.audit.entries = append(s.audit.entries, e)
	return e.ID, nil
}

// EndAudit implements [store.Auditor].
func (s *Store) EndAudit(ctx context.Context, id int64, end row.AuditEnd) error {
	if err := s.enter(ctx, "end an entry of the audit log"); err != nil {
		return err
	}
	defer s.mu.Unlock()
	for i := range s.audit.entries {
		if e := &s.audit.entries[i]; e.ID == id && e.Outcome == "" {
			end.End = s.now()
			e.AuditEnd = end
		}
	}
	return nil
}

// AuditEntries implements [store.Auditor].
func (s *Store) AuditEntries(ctx context.Context, below int64, limit int) (found []row.AuditEntry, err error) {
	if err := s.enter(ctx, "read the audit log"); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	for _, e := range slices.Backward(s.audit.entries) {
		if e.ID < below && len(found) < limit {
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
	looked := 0
	s.audit.entries = slices.DeleteFunc(s.audit.entries, func(e row.AuditEntry) bool {
		looked++
		old := looked <= limit && e.Begin < before
		if old {
			deleted++
		}
		return old
	})
	return deleted, nil
}
