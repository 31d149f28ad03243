package wire

import "github.com/delaytask/delaytask/report"

// AuditEntry is what a caller has changed, or has tried to.
type AuditEntry struct {
	ID     ID     `json:"id"`
	Time   Time   `json:"time" doc:"When the change was about to begin"`
	Who    string `json:"who" doc:"Access token, or user@host of the command; empty: no token was asked for"`
	Via    string `json:"via" doc:"api, command or dashboard"`
	Action string `json:"action" doc:"Such as task.cancel, bulk.retry or tag.pause"`
	Target string `json:"target,omitempty" doc:"Id of the task, or name of the schedule, receiver or token"`
	Tag    string `json:"tag,omitempty" doc:"Absent: all tags, several, or none"`
	Detail string `json:"detail,omitempty" doc:"Filter of a bulk change with its moment; what else was asked for"`

	Outcome report.AuditOutcome `json:"outcome" doc:"done, unchanged, refused, failed, stopped, unknown, lost or empty"`
	Tasks   int64               `json:"tasks" doc:"That were changed; so far while it is under way"`
	Error   string              `json:"error,omitempty" doc:"Why it was not done"`
	Ended   Time                `json:"ended,omitzero"`
}

// AuditPage is a part of the audit log, the newest entries first.
type AuditPage struct {
	Entries []AuditEntry `json:"entries"`
	Next    ID           `json:"next,omitzero" doc:"The before of the next page; absent on the last one"`
	Stopped bool         `json:"stopped,omitempty" doc:"It has looked at 10,000 entries; there may be more"`
}

// FromAuditPage is a page of the audit log in JSON.
func FromAuditPage(p *report.AuditPage) AuditPage {
	return AuditPage{Entries: each(p.Entries, fromAuditEntry), Next: ID(p.Next), Stopped: p.Stopped}
}

// To is the page as Go has it.
func (p *AuditPage) To() report.AuditPage {
	return report.AuditPage{Entries: each(p.Entries, (*AuditEntry).to), Next: int64(p.Next), Stopped: p.Stopped}
}

func fromAuditEntry(e *report.AuditEntry) AuditEntry {
	return AuditEntry{
		ID: ID(e.ID), Time: Time(e.Time), Who: e.Who, Via: e.Via, Action: e.Action, Target: e.Target, Tag: e.Tag,
		Detail: e.Detail, Outcome: e.Outcome, Tasks: e.Tasks, Error: e.Error, Ended: Time(e.Ended),
	}
}

func (e *AuditEntry) to() report.AuditEntry {
	return report.AuditEntry{
		ID: int64(e.ID), Time: e.Time.Std(), Who: e.Who, Via: e.Via, Action: e.Action, Target: e.Target, Tag: e.Tag,
		Detail: e.Detail, Outcome: e.Outcome, Tasks: e.Tasks, Error: e.Error, Ended: e.Ended.Std(),
	}
}
