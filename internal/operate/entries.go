package operate

import (
	"context"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/report"
)

// Entries returns a page of the audit log. It takes the verb audit, and leaves out entries of tags that the caller has
// it not for. What is about no single tag takes the verb for all tags. It returns errors as [scheduler.Scheduler.Audit]
// does.
func (o *Operator) Entries(ctx context.Context, by By, f report.AuditFilter) (report.AuditPage, error) {
	if err := by.Allow(access.Audit, f.Tag); err != nil {
		return report.AuditPage{}, err
	}
	return audit.Read(ctx, o.store, f, func(tag string) bool { return by.May(access.Audit, tag) })
}
