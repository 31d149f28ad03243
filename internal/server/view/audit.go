package view

import (
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

// Audit is a page of the audit log.
func Audit(p *report.AuditPage) wire.AuditPage {
	v := wire.AuditPage{Entries: make([]wire.AuditEntry, len(p.Entries)), Next: wire.ID(p.Next), Stopped: p.Stopped}
	for i, e := range p.Entries {
		v.Entries[i] = wire.AuditEntry{
			ID: wire.ID(e.ID), Time: wire.Time(e.Time), Who: e.Who, Via: e.Via, Action: e.Action, Target: e.Target,
			Tag: e.Tag, Detail: e.Detail, Outcome: string(e.Outcome), Tasks: e.Tasks, Error: e.Error,
			Ended: wire.Time(e.Ended),
		}
	}
	return v
}
