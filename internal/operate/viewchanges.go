package operate

import (
	"context"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/report"
)

// Entries returns a page of the audit log. It takes the verb audit, and leaves out entries of tags that the caller has
// it not for. What is about no single tag takes the verb for all tags. It returns errors as [scheduler.Scheduler.Audit]
// does.
func (v *View) Entries(ctx context.Context, f report.AuditFilter) (page report.AuditPage, err error) {
	if err := v.Allow(access.Audit, f.Tag); err != nil {
		return page, err
	}
	page, err = audit.Read(ctx, v.o.store, f, func(tag string) bool { return v.May(access.Audit, tag) })
	for i := range page.Entries {
		e, m := &page.Entries[i], v.masking(page.Entries[i].Tag)
		e.Detail, e.Error = m.text(e.Detail), m.text(e.Error)
	}
	return page, err
}

// Runs returns the newest bulk changes of all processes, of tags that the caller may read or change.
func (v *View) Runs(ctx context.Context) ([]bulk.State, error) {
	if err := v.follows(); err != nil {
		return nil, err
	}
	return v.o.Core.Bulks().List(ctx, v.o.store, v.sees)
}

// Run returns a bulk change of any process. It returns [bulk.ErrUnknown] also for one that the caller may not see.
func (v *View) Run(ctx context.Context, id string) (bulk.State, error) {
	if err := v.follows(); err != nil {
		return bulk.State{}, err
	}
	return v.o.run(ctx, v.By, id)
}

// follows refuses a caller that may see no bulk change at all.
func (v *View) follows() error {
	if v.SomeTag(access.Change) {
		return nil
	}
	return v.Allow(access.Read, "")
}
