package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/testkit/usage"
)

// gauge reads how much of something was spent until now.
type gauge struct {
	Figure
	read func(context.Context) (time.Duration, error)
}

// gauges say where the time of a drain goes.
func (d *Database) gauges(pool *sqlx.DB) []gauge {
	system := func(read func() (time.Duration, error)) func(context.Context) (time.Duration, error) {
		return func(context.Context) (time.Duration, error) { return read() }
	}
	began := time.Now()
	return []gauge{
		{Figure{"drain.wall_us", "of a drained task, from Start until its share of the last result is stored"},
			system(func() (time.Duration, error) { return time.Since(began), nil })},
		{Figure{"drain.client_cpu_us", "of a core that this process uses for a task"}, system(usage.CPU)},
		{Figure{"drain.server_cpu_us", "of a core that the server uses for a task"},
			func(ctx context.Context) (time.Duration, error) { return d.serverCPU(ctx, pool) }},
		{Figure{"drain.idle_us", "of a core that nothing on this machine uses meanwhile"}, system(usage.Idle)},
		{Figure{"drain.claim_us", "in the server from the begin to the end of claims and their read-backs"},
			inStatements(pool, "digest_text LIKE '%`claim` = ?%'")},
		{Figure{"drain.settle_us", "in the server from the begin to the end of settles"},
			inStatements(pool, "digest_text LIKE 'UPDATE%`crash_count` = ?%'")},
	}
}

// withBudget lets the drain have these figures, too.
func withBudget(all []Measurement) []Measurement {
	all = slices.Clone(all)
	for i := range all {
		if all[i].Name == Drain.Name {
			all[i].Figures = slices.Clone(all[i].Figures)
			for _, g := range new(Database).gauges(nil) {
				all[i].Figures = append(all[i].Figures, g.Figure)
			}
		}
	}
	return all
}

// budget adds what a run of n tasks spends on each. What cannot be read here is left out with the reason.
func (r *Runner) budget(ctx context.Context, d *Database, n int, run func() error) error {
	pool, err := d.Connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	before, gauges := map[string]time.Duration{}, d.gauges(pool)
	for _, g := range gauges {
		if before[g.Figure[0]], err = g.read(ctx); err != nil {
			r.Meta.LeftOut[g.Figure[0]] = err.Error()
		}
	}
	if err := run(); err != nil {
		return err
	}
	for _, g := range gauges {
		spent, err := g.read(ctx)
		if err != nil {
			r.Meta.LeftOut[g.Figure[0]] = err.Error()
		}
		if r.Meta.LeftOut[g.Figure[0]] == "" {
			r.Add(g.Figure[0], (spent-before[g.Figure[0]]).Seconds()*1e6/float64(n))
		}
	}
	return nil
}

var (
	errNoServer  = errors.New("SQLite has no server")
	errElsewhere = errors.New("the server is not on this machine")
)

// serverCPU is what the server has used since it started, which has to be on this machine.
func (d *Database) serverCPU(ctx context.Context, pool *sqlx.DB) (time.Duration, error) {
	if d.Kind.Embedded() {
		return 0, errNoServer
	}
	var file, folder, host string
	row := pool.QueryRowContext(ctx, "SELECT @@pid_file, @@datadir, @@hostname")
	if err := row.Scan(&file, &folder, &host); err != nil {
		return 0, fmt.Errorf("ask the server which process it is: %w", err)
	}
	if name, err := os.Hostname(); err != nil || name != host {
		return 0, errors.Join(err, fmt.Errorf("%w, but on %s", errElsewhere, host))
	}
	if !filepath.IsAbs(file) {
		file = filepath.Join(folder, file)
	}
	pid, err := usage.ServerPID(file)
	if err != nil {
		return 0, err
	}
	return usage.CPUOf(pid)
}

var errNoDigests = errors.New("the server adds up no statements: performance_schema is off, or not for this user")

// inStatements is how long the server has taken for such statements of this database, waits included.
func inStatements(pool *sqlx.DB, which string) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		if pool.DriverName() != "mysql" {
			return 0, errNoServer
		}
		var on, picoseconds int64
		// Beside the sum of no row, MariaDB says that it is off.
		err := pool.QueryRowContext(ctx, "SELECT @@performance_schema, (SELECT"+
			" CAST(COALESCE(SUM(sum_timer_wait), 0) AS UNSIGNED)"+
			" FROM performance_schema.events_statements_summary_by_digest"+
			" WHERE schema_name = DATABASE() AND "+which+")").Scan(&on, &picoseconds)
		if err != nil || on == 0 {
			return 0, errors.Join(errNoDigests, err)
		}
		return time.Duration(picoseconds / 1000), nil
	}
}
