package bench

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/usage"
	"github.com/delaytask/delaytask/internal/sqlstore"
)

// Meta says what was measured on.
type Meta struct {
	Server   string            `json:"server"`  // MariaDB, MySQL, TiDB or SQLite
	Version  string            `json:"version"` // as the server reports it
	Settings map[string]string `json:"settings"`
	Machine  Machine           `json:"machine"`
	Go       string            `json:"go"`
	Program  string            `json:"delaytask"`
	Started  string            `json:"started"` // RFC 3339
	Duration int64             `json:"duration_ms"`
	Rows     int               `json:"rows"`
	Million  int               `json:"million"` // rows where a figure speaks of a million: fewer in a quick run
	Repeats  int               `json:"repeats"`
	Run      string            `json:"run"` // quick, default or full
	// Viewers is how many dashboards were open, beside Rate tasks a second. 0: they were not measured.
	Viewers int `json:"viewers,omitempty"`
	Rate    int `json:"rate,omitempty"`
	// Database is the database that is kept, or its file. Empty: none is.
	Database string `json:"database,omitempty"`
	// Forms names the statements that raw measurements use where there is a choice.
	Forms map[string]string `json:"forms,omitempty"`
	// Stolen is how much of its CPU time the host of a virtual machine gave to others, in percent, during each
	// measurement and, as "all", during the run. Absent where it is unknown.
	Stolen map[string]float64 `json:"stolen_pct,omitempty"`
	// LeftOut says why measurements could not be taken here, by their names.
	LeftOut map[string]string `json:"left_out,omitempty"`
}

// wholeRun is the run's name among those of measurements.
const wholeRun = "all"

// StolenInAll is [Meta.Stolen] of the whole run.
func (m Meta) StolenInAll() float64 { return m.Stolen[wholeRun] }

// Machine is where this program runs; the server may be elsewhere.
type Machine struct {
	CPUs int    `json:"cpus"`
	OS   string `json:"os"`
	Arch string `json:"arch"`
}

// settings are those that the cost of a commit depends on, and that of a read after a restart. A server lacks some of
// them.
var settings = []string{
	"innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin", "innodb_buffer_pool_size", "innodb_log_file_size",
	"innodb_redo_log_capacity", "innodb_doublewrite", "innodb_flush_method", "innodb_buffer_pool_load_at_startup",
}

func (r *run) describe(ctx context.Context, began time.Time) error {
	r.meta = Meta{
		Settings: make(map[string]string), Forms: make(map[string]string), LeftOut: make(map[string]string),
		Machine: Machine{runtime.NumCPU(), runtime.GOOS, runtime.GOARCH},
		Go:      runtime.Version(), Program: delaytask.Version,
		Started: began.UTC().Format(time.RFC3339),
		Rows:    r.Rows, Million: r.workload.million(), Repeats: r.Repeats, Run: "default",
	}
	switch {
	case r.Quick:
		r.meta.Run = "quick"
	case r.Full:
		r.meta.Run = "full"
	}
	return r.onFresh(ctx, func(ctx context.Context, d *database) error {
		pool, err := d.connect(ctx, 1)
		if err != nil {
			return err
		}
		defer pool.Close()
		if d.kind == sqlstore.SQLite {
			return r.meta.describeSQLite(ctx, pool)
		}
		return r.meta.describeMySQL(ctx, pool)
	})
}

func (m *Meta) describeSQLite(ctx context.Context, pool *sqlx.DB) error {
	m.Server = "SQLite"
	var synchronous int
	var journal string
	err := pool.QueryRowContext(ctx,
		"SELECT sqlite_version(), s.synchronous, j.journal_mode FROM pragma_synchronous s, pragma_journal_mode j").
		Scan(&m.Version, &synchronous, &journal)
	if err != nil {
		return fmt.Errorf("ask SQLite for its settings: %w", err)
	}
	m.Settings["synchronous"] = []string{"OFF", "NORMAL", "FULL", "EXTRA"}[synchronous]
	m.Settings["journal_mode"] = journal
	return nil
}

func (m *Meta) describeMySQL(ctx context.Context, pool *sqlx.DB) error {
	if err := pool.QueryRowContext(ctx, "SELECT VERSION()").Scan(&m.Version); err != nil {
		return fmt.Errorf("ask the server for its version: %w", err)
	}
	m.Server = "MySQL"
	for _, name := range []string{"MariaDB", "TiDB"} {
		if strings.Contains(m.Version, name) {
			m.Server = name
		}
	}
	query, args, err := sqlx.In("SHOW GLOBAL VARIABLES WHERE Variable_name IN (?)", settings)
	if err != nil {
		return fmt.Errorf("list the settings: %w", err)
	}
	rows, err := pool.QueryContext(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("ask the server for its settings: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return fmt.Errorf("read the settings: %w", err)
		}
		m.Settings[name] = value
	}
	if err := rows.Err(); err != nil {
		return err
	}
	up, err := readStatus(ctx, pool, "Uptime")
	m.Settings["uptime"] = strconv.FormatInt(up, 10)
	return err
}

// stolen adds up, for each measurement, the CPU time that the host of this virtual machine gave to others. A process
// that loses its CPU for some milliseconds is late by them.
type stolen map[string]ticks

type ticks struct{ taken, all int64 }

func (s stolen) percent() map[string]float64 {
	percents := make(map[string]float64)
	for name, t := range s {
		if t.all > 0 {
			percents[name] = rounded("_pct", 100*float64(t.taken)/float64(t.all))
		}
	}
	return percents
}

// during adds what is stolen while f runs to the named measurement, where that is known.
func (s stolen) during(name string, f func() error) error {
	taken, all, unknown := usage.Stolen()
	err := f()
	if unknown != nil {
		return err
	}
	if takenThen, allThen, unknown := usage.Stolen(); unknown == nil {
		t := s[name]
		s[name] = ticks{t.taken + takenThen - taken, t.all + allThen - all}
	}
	return err
}
