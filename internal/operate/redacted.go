package operate

import (
	"maps"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// masking masks texts of one tag, and notes whether one held a secret.
type masking struct {
	redactor *redact.Redactor
	tag      string
	masked   bool
}

func (m *masking) text(stored string) string {
	shown := m.redactor.Text(m.tag, stored)
	m.masked = m.masked || shown != stored
	return shown
}

// body keeps a body that is nil: it was not read.
func (m *masking) body(stored []byte) []byte {
	if len(stored) == 0 {
		return stored
	}
	text := string(stored)
	if shown := m.text(text); shown != text {
		return []byte(shown)
	}
	return stored
}

func (m *masking) headers(stored map[string]string) map[string]string {
	shown := m.redactor.Headers(m.tag, stored)
	m.masked = m.masked || !maps.Equal(shown, stored)
	return shown
}

// RedactedTask is a copy of a task with the secrets of its body, its headers and its errors masked. It reports whether
// there were any. A nil Redactor masks nothing, here and below.
func RedactedTask(r *redact.Redactor, t *delaytask.TaskRow) (delaytask.TaskRow, bool) {
	shown, m := *t, masking{redactor: r, tag: t.Tag}
	if r == nil {
		return shown, false
	}
	shown.Body, shown.Headers = m.body(t.Body), m.headers(t.Headers)
	shown.ErrorStack, shown.Broken = m.text(t.ErrorStack), m.text(t.Broken)
	shown.Errors = slices.Clone(t.Errors)
	for i := range shown.Errors {
		shown.Errors[i].Error = m.text(t.Errors[i].Error)
	}
	return shown, m.masked
}

// RedactedBody is RedactedTask for a body alone.
func RedactedBody(r *redact.Redactor, tag string, body []byte) ([]byte, bool) {
	if r == nil {
		return body, false
	}
	m := masking{redactor: r, tag: tag}
	return m.body(body), m.masked
}

// RedactedSchedule is RedactedTask for a schedule: for its body, its headers and its reason.
func RedactedSchedule(r *redact.Redactor, s *delaytask.Schedule) (delaytask.Schedule, bool) {
	shown, m := *s, masking{redactor: r, tag: s.Tag}
	if r == nil {
		return shown, false
	}
	shown.Body, shown.Headers, shown.Reason = m.body(s.Body), m.headers(s.Headers), m.text(s.Reason)
	return shown, m.masked
}

// RedactedTicks masks the secrets of the notes of ticks of a schedule, in place.
func RedactedTicks(r *redact.Redactor, tag string, ticks []delaytask.ScheduleTick) []delaytask.ScheduleTick {
	for i := range ticks {
		ticks[i].Note = r.Text(tag, ticks[i].Note)
	}
	return ticks
}

// RedactedAudit masks the secrets of what people have written into the details of entries, and of errors, in place.
func RedactedAudit(r *redact.Redactor, p *report.AuditPage) *report.AuditPage {
	for i := range p.Entries {
		e := &p.Entries[i]
		e.Detail, e.Error = r.Text(e.Tag, e.Detail), r.Text(e.Tag, e.Error)
	}
	return p
}

// RedactedOverview masks the secrets of the errors that findings name, in place.
func RedactedOverview(r *redact.Redactor, o *report.Overview) *report.Overview {
	for i := range o.Attention {
		f := &o.Attention[i]
		f.Text, f.Error = r.Text(f.Tag, f.Text), r.Text(f.Tag, f.Error)
	}
	return o
}

// RedactedFailures masks the secrets of the errors of groups, in place.
func RedactedFailures(r *redact.Redactor, f *report.Failures) *report.Failures {
	if r == nil {
		return f
	}
	for i := range f.Groups {
		g := &f.Groups[i]
		of := row.Failure{Tag: g.Tag, Error: g.Example}
		g.Error, g.Example = listing.Masked(of, r.Text), r.Beginning(g.Tag, g.Example, row.FailureSize-len(redact.Cut))
	}
	return f
}
