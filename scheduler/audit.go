package scheduler

import (
	"context"

	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/report"
)

// Audit returns what people have changed through the service, the command and the dashboard, the newest first. Calls of
// this package are not recorded: a program knows who has asked it. A page looks at 10,000 entries at most.
//
// It returns [delaytask.ErrInvalidOption] for a negative Before or Limit.
func (s *Scheduler) Audit(ctx context.Context, f report.AuditFilter) (report.AuditPage, error) {
	if err := s.enter(ctx); err != nil {
		return report.AuditPage{}, err
	}
	return audit.Read(ctx, s.store, f, nil)
}
