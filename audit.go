package delaytask

import (
	"context"

	"github.com/delaytask/delaytask/internal/audit"
	"github.com/delaytask/delaytask/processor"
)

// What people have changed.
type (
	AuditFilter  = processor.AuditFilter
	AuditPage    = processor.AuditPage
	AuditEntry   = processor.AuditEntry
	AuditOutcome = processor.AuditOutcome
)

// The outcomes of an [AuditEntry].
const (
	AuditUnderWay  = processor.AuditUnderWay
	AuditDone      = processor.AuditDone
	AuditUnchanged = processor.AuditUnchanged
	AuditRefused   = processor.AuditRefused
	AuditFailed    = processor.AuditFailed
	AuditUnknown   = processor.AuditUnknown
	AuditStopped   = processor.AuditStopped
	AuditLost      = processor.AuditLost
)

// Audit returns what people have changed through the service, the command and the dashboard, the newest first. Calls of
// this package are not recorded: a program knows who has asked it. A page looks at 10,000 entries at most.
//
// It returns [ErrInvalidOption] for a negative Before or Limit.
func (s *Scheduler) Audit(ctx context.Context, f AuditFilter) (AuditPage, error) {
	if err := s.enter(ctx); err != nil {
		return AuditPage{}, err
	}
	return audit.Read(ctx, s.store, f, nil)
}
