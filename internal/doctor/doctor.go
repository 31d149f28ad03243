// Package doctor looks for what makes delaytask slow, late or unsafe on a database: the schema, privileges, settings of
// the server, plans of the hot statements, nodes, and the tasks themselves. It changes nothing.
//
// Every read is bounded or enters by an index, and every check has a deadline of its own. A check that cannot look
// becomes a finding, and the others go on.
package doctor

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
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

// Subject is what is examined: a database, and the settings of the processes that use it.
type Subject struct {
	Store *sqlstore.Store
	DB    *sql.DB // the pool of the store
	Kind  sqlstore.Kind

	BodyLimit int
	Retention map[row.Status]time.Duration // of final statuses; 0: for ever
	Receivers []string                     // tags whose tasks are posted to addresses of the settings

	Progress func(done, total int) // is called after each check, also from several goroutines; may be nil

	inspect sqlstore.Inspector
	account sqlstore.Account // zero on SQLite
	looked  func()           // is called after each check
}

const (
	deadline = 3 * time.Second // of a check
	patience = 7 * time.Second // of all: a database that hangs has said enough
	atOnce   = 4               // checks
)

// check looks at one thing. An error says that it could not look.
type check struct {
	name  string
	run   func(context.Context, *Subject) ([]Finding, error)
	needs string // the privilege that the check needs and a process does not
}

// The checks that no process makes at its start.
var (
	ofServer = []check{
		{"settings", checkSettings, ""},
		{"history", checkHistory, "PROCESS ON *.*"},
		{"transactions", checkTransactions, "PROCESS ON *.*"},
	}
	ofFile  = []check{{"file", checkFile, ""}}
	ofTasks = []check{ // which read the tables of tasks
		{"tasks", checkTasks, ""},
		{"leases", checkLeases, ""},
		{"purge", checkPurge, ""},
		{"nodes", checkNodes, ""},
	}
	ofService = []check{{"receivers", checkReceivers, ""}}
)

// Examine runs all checks that the database and its schema allow.
func Examine(ctx context.Context, s Subject) Report {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var r Report
	s.inspect = sqlstore.Inspect(s.Store)
	checks := []check{{"migrations", checkMigrations, "SELECT ON DATABASE.delay_task_goose_version"}}
	if s.Kind == sqlstore.SQLite {
		checks = append(checks, ofFile...)
	} else {
		s.account, _ = s.inspect.Account(ctx) // without it a GRANT names no account
		checks = append(checks, ofServer...)
	}
	s.looked = s.counter(len(checks))
	r.add(ctx, &s, append(checks, r.examineStart(ctx, &s)...))
	r.remakeTables(s.Kind)
	r.Findings = merged(r.Findings)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
	return r
}

// counter counts these checks and all that a database allows which has its tables.
func (s *Subject) counter(checks int) (looked func()) {
	if s.Progress == nil {
		return func() {}
	}
	const plans = 1
	total := checks + len(s.inspect.StartChecks(s.BodyLimit)) + plans + len(s.inspect.ServiceChecks()) + len(ofTasks) +
		len(ofService)
	var done atomic.Int32
	return func() { s.Progress(int(done.Add(1)), total) }
}

// merged makes one finding of all that the same command mends.
func merged(findings []Finding) (all []Finding) {
	all = []Finding{} // [] in JSON, not null
	for _, f := range findings {
		same := slices.IndexFunc(all, func(a Finding) bool { return a.Code == f.Code && a.Fix == f.Fix })
		if same < 0 {
			all = append(all, f)
			continue
		}
		all[same].Title += "; " + f.Title
	}
	return all
}

// add runs the checks, some at a time, and keeps their order.
func (r *Report) add(ctx context.Context, s *Subject, checks []check) {
	found := make([][]Finding, len(checks))
	permits := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i, c := range checks {
		running.Go(func() {
			permits <- struct{}{}
			defer func() { <-permits }()
			found[i] = c.look(ctx, s)
		})
	}
	running.Wait()
	for i, c := range checks {
		r.put(c.name, found[i])
	}
}

func (r *Report) put(check string, found []Finding) {
	outcome := Outcome{Check: check, Severity: Report{Findings: found}.Worst()}
	r.Checks, r.Findings = append(r.Checks, outcome), append(r.Findings, found...)
}

// look runs a check within its deadline.
func (c check) look(ctx context.Context, s *Subject) []Finding {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	defer s.looked()
	found, err := c.run(ctx, s)
	if err != nil {
		found = append(found, s.unread(c, err))
	}
	return found
}

// unread is the finding of a check that could not look.
func (s *Subject) unread(c check, err error) Finding {
	f := Finding{
		Code: "unread_" + c.name, Severity: Warning,
		Title:   fmt.Sprintf("the check of %s could not look: %v", c.name, err),
		Meaning: "what it looks for may be there",
		Fix:     "delaytask doctor",
	}
	if c.needs != "" {
		f.Severity = Info // a process works without the privilege
	}
	switch e, classified := errors.AsType[*row.Error](err); {
	case sqlstore.IsDenied(err) && c.needs != "":
		needs := strings.ReplaceAll(c.needs, "DATABASE", "`"+s.account.Database+"`")
		f.Fix = "GRANT " + needs + " TO " + s.account.Grantee()
	case errors.Is(err, context.DeadlineExceeded):
		f.Title = fmt.Sprintf("the check of %s has not ended within %v", c.name, deadline)
		f.Meaning = "the database is slow, or a statement waits; " + f.Meaning
	case classified && e.Hint != "":
		f.Title, f.Fix = fmt.Sprintf("the check of %s could not look: %s: %v", c.name, e.Op, e.Err), e.Hint
	}
	return f
}
