package core

import (
	"context"

	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/report"
)

func (c *Core) Audit(ctx context.Context, f report.AuditFilter) (report.AuditPage, error) {
	if err := c.enter(ctx); err != nil {
		return report.AuditPage{}, err
	}
	return audit.Read(ctx, c.store, f, nil)
}
