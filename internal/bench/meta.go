package bench

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/scheduler"
)

// Meta says what was measured on.
type Meta struct {
	Server   string            `json:"server"`  // MariaDB, MySQL, TiDB or SQLite
	Version  string            `json:"version"` // as the server reports it
	Settings map[string]string `json:"settings"`
	Machine  string            `json:"machine"` // where this program runs; the server may be elsewhere
	Go       string            `json:"go"`
	Program  string            `json:"delaytask"`
	Started  time.Time         `json:"started"`
	Duration int64             `json:"duration_ms"`
	Repeats  int               `json:"repeats,omitempty"`  // 0: as each measurement says
	Run      string            `json:"run"`                // quick or default
	LeftOut  map[string]string `json:"left_out,omitempty"` // why measurements or figures could not be taken, by name
}

const (
	sqliteSettings = "SELECT 'version', sqlite_version() UNION ALL " +
		"SELECT 'journal_mode', journal_mode FROM pragma_journal_mode UNION ALL " +
		"SELECT 'synchronous', CASE synchronous WHEN 2 THEN 'FULL' ELSE synchronous END FROM pragma_synchronous"

	// What the cost of a commit depends on, and of a read after a restart. A server lacks some of them.
	mysqlSettings = "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('version', 'innodb_flush_log_at_trx_commit', " +
		"'sync_binlog', 'log_bin', 'innodb_buffer_pool_size', 'innodb_log_file_size', 'innodb_redo_log_capacity', " +
		"'innodb_doublewrite', 'innodb_flush_method', 'innodb_buffer_pool_load_at_startup')"
)

func (m *Meta) describe(ctx context.Context, d *Database, o Options) error {
	*m = Meta{
		Server: "SQLite", Settings: map[string]string{}, LeftOut: map[string]string{},
		Machine: fmt.Sprintf("%d CPUs, %s/%s", runtime.NumCPU(), runtime.GOOS, runtime.GOARCH), Go: runtime.Version(),
		Program: scheduler.Version, Started: time.Now().UTC(), Repeats: o.Repeats, Run: "default",
	}
	if o.Quick {
		m.Run = "quick"
	}
	pool, err := d.Connect(ctx, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	query := sqliteSettings
	if !d.Kind.Embedded() {
		query, m.Server = mysqlSettings, "MySQL"
	}
	rows, err := pool.QueryContext(ctx, query)
	if err != nil {
		return fmt.Errorf("ask the database for its settings: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return fmt.Errorf("read the settings of the database: %w", err)
		}
		m.Settings[name] = value
	}
	m.Version = m.Settings["version"]
	delete(m.Settings, "version")
	for _, name := range []string{"MariaDB", "TiDB"} {
		if strings.Contains(m.Version, name) {
			m.Server = name
		}
	}
	return rows.Err()
}

// Title says in two lines on what was measured.
func (m Meta) Title() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(m.Settings)) {
		words = append(words, name+"="+m.Settings[name])
	}
	took := (time.Duration(m.Duration) * time.Millisecond).Round(time.Second)
	return fmt.Sprintf("%s %s; %s; %s run in %v\n%s\n", m.Server, m.Version, m.Machine, m.Run, took,
		strings.Join(words, " "))
}

// Notes says in lines what could not be measured.
func (m Meta) Notes() (notes string) {
	for _, name := range slices.Sorted(maps.Keys(m.LeftOut)) {
		notes += fmt.Sprintf("\nNot measured: %s: %s\n", name, m.LeftOut[name])
	}
	return notes
}
