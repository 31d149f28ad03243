package doctor

import (
	"fmt"
	"slices"
	"strings"
)

// Severity orders findings.
type Severity uint8

// The severities, the mildest first.
const (
	OK       Severity = iota // a check found nothing
	Info                     // worth knowing
	Warning                  // tasks may be late or refused, or a crash may cost accepted tasks
	Critical                 // delaytask cannot work, or not correctly
)

var severities = []string{"ok", "info", "warning", "critical"}

func (s Severity) String() string { return severities[s] }

// MarshalText implements [encoding.TextMarshaler].
func (s Severity) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ParseSeverity reports whether there is a severity of that name.
func ParseSeverity(name string) (Severity, bool) {
	at := slices.Index(severities, name)
	return Severity(max(at, 0)), at >= 0
}

// Finding is one thing that an operator should know.
type Finding struct {
	Code     string   `json:"code"` // never changes its meaning
	Severity Severity `json:"severity"`
	Title    string   `json:"title"`         // what was found
	Meaning  string   `json:"meaning"`       // what follows from it
	Fix      string   `json:"fix,omitempty"` // the command or statement that mends it, or what to do
}

// Outcome is the worst of what a check found.
type Outcome struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
}

// Report is what all checks found, the worst first.
type Report struct {
	Findings []Finding `json:"items"`
	Checks   []Outcome `json:"checks"` // those that looked, in their order
}

// Worst returns the severity of the worst finding.
func (r Report) Worst() (worst Severity) {
	for _, f := range r.Findings {
		worst = max(worst, f.Severity)
	}
	return worst
}

func (r *Report) put(check string, found []Finding) {
	outcome := Outcome{Check: check, Severity: Report{Findings: found}.Worst()}
	r.Checks, r.Findings = append(r.Checks, outcome), append(r.Findings, found...)
}

// few names some of many.
func few(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
