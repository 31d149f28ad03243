package dashboard

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/report"
)

// auditPage is what people have changed, the newest first.
type auditPage struct {
	Filter  report.AuditFilter
	Actions []string
	Tags    []string
	Entries []report.AuditEntry
	Next    string // the query of the next page
	First   bool
	Stopped bool
	Command string
}

// entries shows the audit log.
func (v *view) entries() (any, error) {
	q := v.r.URL.Query()
	f := report.AuditFilter{Who: q.Get("who"), Action: q.Get("action"), Tag: q.Get("tag"), Limit: tasksOfPage}
	if text := q.Get("before"); text != "" {
		before, err := strconv.ParseInt(text, 10, 64)
		if err != nil || before <= 0 {
			return nil, invalid{field: "before", want: "want.entry"}
		}
		f.Before = before
	}
	found, err := v.look().Entries(v.r.Context(), f)
	if err != nil {
		return nil, err
	}
	shown := auditPage{
		Filter: f, Actions: audit.Actions(), Entries: found.Entries, First: f.Before == 0, Stopped: found.Stopped,
		Command: sentence.Command("audit", "who", f.Who, "action", f.Action, "tag", f.Tag),
	}
	if found.Next != 0 {
		shown.Next = query("who", f.Who, "action", f.Action, "tag", f.Tag, "before", strconv.FormatInt(found.Next, 10))
	}
	return shown, nil
}

// TargetOf leads to what an entry is about, "" where no page shows it.
func (v *view) TargetOf(e report.AuditEntry) string {
	kind, _, _ := strings.Cut(e.Action, ".")
	switch {
	case kind == "task" && e.Target != "":
		return v.Root + "tasks/" + v.Segment(e.Target)
	case kind == "bulk":
		return v.Root + "bulk/" + v.Segment(cmp.Or(e.Target, strconv.FormatInt(e.ID, 10)))
	case kind == "schedule" && e.Target != "":
		return v.Root + "schedules/" + v.Segment(e.Target)
	case e.Tag != "":
		return v.Root + "tags/" + v.Segment(e.Tag)
	default:
		return ""
	}
}
