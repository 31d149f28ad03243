// Package doctor looks for what makes delaytask slow, late or unsafe on a database: the schema, privileges, settings of
// the server, plans of the hot statements, nodes, and the tasks themselves. It changes nothing.
//
// Every read is bounded or enters by an index, and every check has a deadline of its own. A check that cannot look
// becomes a finding, and the others go on.
package doctor

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// The checks that no process makes at its start.
var (
	ofAddress = []check{{"address", checkAddress, ""}}
	ofServer  = []check{ // where there is one
		{"settings", checkSettings, ""},
		{"history", checkHistory, "PROCESS ON *.*"},
		{"transactions", checkTransactions, "PROCESS ON *.*"},
	}
	ofFile  = []check{{"file", checkFile, ""}}
	ofTasks = []check{ // which read the tables of tasks
		{"tasks", checkTasks, ""},
		{"leases", checkLeases, ""},
		{"purge", checkPurge, ""},
		{"schedules", checkSchedules, ""},
		{"nodes", checkNodes, ""},
	}
	ofService = []check{{"receivers", checkReceivers, ""}}
)

// patience bounds all checks: a database that hangs has said enough.
const patience = 7 * time.Second

// Examine runs all checks that the database and its schema allow.
func Examine(ctx context.Context, s Subject) Report {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var r Report
	s.inspect = sqlstore.Inspect(s.Store)
	checks := []check{{"migrations", checkMigrations, "SELECT ON DATABASE.delay_task_goose_version"}}
	s.oneServer = true
	if s.Kind == sqlstore.SQLite {
		checks = append(checks, ofFile...)
	} else {
		var err error
		s.account, err = s.inspect.Account(ctx) // without it a GRANT names no account
		s.oneServer = err != nil || s.account.OneServer()
		checks = append(checks, ofAddress...)
		if s.oneServer {
			checks = append(checks, ofServer...)
		} else {
			r.put("servers", []Finding{behind(s.account.Server)})
		}
	}
	s.looked = s.counter(len(checks))
	r.add(ctx, &s, append(checks, r.examineStart(ctx, &s)...))
	r.remakeTables(s.Kind)
	r.Findings = merged(r.Findings)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return int(b.Severity) - int(a.Severity) })
	return r
}

// examineStart runs what every process checks when it starts, and returns the other checks whose tables are there.
func (r *Report) examineStart(ctx context.Context, s *Subject) (possible []check) {
	if r.start(ctx, s, "", s.inspect.StartChecks(s.BodyLimit)) && r.indexed(ctx, s) {
		possible = append(possible, ofTasks...)
	}
	if r.start(ctx, s, "service ", s.inspect.ServiceChecks()) {
		possible = append(possible, ofService...)
	}
	return possible
}

// indexed reports whether no index is missing. The other checks would read the whole table without it.
func (r *Report) indexed(ctx context.Context, s *Subject) bool {
	if !s.oneServer {
		return true
	}
	plans := check{"plans", checkPlans, ""}
	found := plans.look(ctx, s)
	r.put(plans.name, found)
	return Report{Findings: found}.Worst() < Critical
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
		if all[same].Title != f.Title {
			all[same].Title += "; " + f.Title
		}
	}
	return all
}
