// Command layout measures forms of the table of tasks beside each other: the order of the due index, the form of the
// executor, ids that carry a place, and what shares of the nodes read. docs/adr/0028-layout.md has its results.
//
//	go -C bench run ./layout -dsn 'root@tcp(127.0.0.1:3306)/' -what gaps,costs,rows,ids,shares
package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	_ "github.com/delaytask/delaytask/internal/store/sqlstore" // has the driver
)

func main() {
	dsn := flag.String("dsn", "root@tcp(127.0.0.1:3306)/", "data source name of a server, without a database")
	what := flag.String("what", "gaps,costs,rows,ids,shares", "what to measure")
	rounds := flag.Int("rounds", 15, "rounds, in each of which the forms take turns")
	pid := flag.Int("pid", 0, "process of the server, whose processor time is read")
	history := flag.Int("history", 300_000, "finished rows of the table that costs and shares read")
	flag.Parse()
	if err := do(context.Background(), *dsn, strings.Split(*what, ","), *rounds, *history, *pid); err != nil {
		fmt.Fprintln(os.Stderr, "layout:", err)
		os.Exit(1)
	}
}

const database = "delaytask_layout"

func do(ctx context.Context, dsn string, what []string, rounds, history, pid int) error {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	var version string
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return err
	}
	fmt.Printf("# %s\n", version)
	measurements := map[string]func(*bench) error{
		"gaps": (*bench).gaps, "costs": (*bench).costs, "rows": (*bench).rows, "ids": (*bench).ids,
		"shares": (*bench).shares,
	}
	for _, name := range what {
		for _, q := range []string{"DROP DATABASE IF EXISTS " + database, "CREATE DATABASE " + database} {
			if _, err := db.ExecContext(ctx, q); err != nil {
				return err
			}
		}
		inner, err := sql.Open("mysql", strings.TrimSuffix(dsn, "/")+"/"+database+
			"?interpolateParams=true&multiStatements=true")
		if err != nil {
			return err
		}
		measure := measurements[name]
		if measure == nil {
			return fmt.Errorf("nothing is called %s", name)
		}
		b := &bench{ctx: ctx, db: inner, rounds: rounds, history: history, pid: pid,
			out: tabwriter.NewWriter(os.Stdout, 0, 0, 1, ' ', tabwriter.AlignRight)}
		err = measure(b)
		_ = inner.Close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		_ = b.out.Flush()
	}
	_, err = db.ExecContext(ctx, "DROP DATABASE "+database)
	return err
}

type bench struct {
	ctx             context.Context
	db              *sql.DB
	rounds, history int
	pid             int // of the server
	out             *tabwriter.Writer
	next            int64
}

// A form is one way to lay out the table.
type form struct {
	name   string
	change func(ddl string) string // of the statement that makes the table
	claim  string                  // sets, besides what all claims do

	generated bool // execution_time and finish_time are computed
}

func (f form) table() string {
	return "t_" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, f.name)
}

const (
	dueIndex     = "KEY delay_task_message_due (status, tag, due_time)"
	textExecutor = "executor = ?, ip_address = 2130706433"
)

// make creates the table of a form from the migration in force.
func (b *bench) make(f form) error {
	text, err := os.ReadFile("../migrations/mysql/00001_tables.sql")
	if err != nil {
		return err
	}
	_, ddl, _ := strings.Cut(string(text), "-- +goose Up\n")
	ddl, _, _ = strings.Cut(ddl, ";\n\n")
	changed := ddl
	if f.change != nil {
		if changed = f.change(ddl); changed == ddl {
			return fmt.Errorf("the form %q changes nothing", f.name)
		}
	}
	return b.exec(strings.ReplaceAll(changed, "delay_task_message", f.table()))
}

func (b *bench) exec(q string, args ...any) error {
	_, err := b.db.ExecContext(b.ctx, q, args...)
	if err != nil {
		return fmt.Errorf("%.200s: %w", q, err)
	}
	return nil
}

func replaced(old, with string) func(string) string {
	return func(ddl string) string { return strings.Replace(ddl, old, with, 1) }
}

// values are n rows as a save inserts them; ids come from id.
func (b *bench) insert(f form, n int, tag func(i int) string, due string, id func() int64) ([]int64, error) {
	var ids []int64
	var q strings.Builder
	q.WriteString("INSERT INTO " + f.table() + " (id, expected_time, tag, message_body, max_attempts, ttr," +
		" priority, delay_time," +
		" due_time, create_time, update_time) VALUES ")
	for range n {
		ids = append(ids, id())
	}
	if strings.HasSuffix(f.name, "in order") {
		slices.Sort(ids)
	}
	for i, next := range ids {
		if i > 0 {
			q.WriteString(", ")
		}
		fmt.Fprintf(&q, "(%d, %s, '%s', '%s', 20, 15000, 0, 60000, %[2]s, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6))",
			next, due, tag(i), body)
	}
	return ids, b.exec(q.String())
}

var body = strings.Repeat("x", 100)

// sequential returns ids as a process makes them.
func (b *bench) sequential() int64 {
	b.next++
	return 1<<61 | b.next
}

func list(ids []int64) string {
	var q strings.Builder
	for i, id := range ids {
		if i > 0 {
			q.WriteString(", ")
		}
		fmt.Fprint(&q, id)
	}
	return q.String()
}

func (b *bench) claim(f form, ids []int64, n int64) error {
	set := f.claim
	if set == "" {
		set = textExecutor
	}
	var args []any
	if strings.Contains(set, "?") {
		args = append(args, fmt.Sprintf("app-7d9f8c6b5d-x2x7k:4711:%016x:%d", 0x1234567890abcdef, n))
	}
	if !f.generated {
		set += ", execution_time = COALESCE(execution_time, GREATEST(UTC_TIMESTAMP(6), due_time))"
	}
	return b.exec("UPDATE "+f.table()+" t FORCE INDEX (PRIMARY) SET status = 3, version = version + 1, attempt"+
		" = attempt + 1, "+set+
		", due_time = GREATEST(UTC_TIMESTAMP(6),"+
		" due_time) + INTERVAL GREATEST(ttr, 1000) * 1000 MICROSECOND, update_time = UTC_TIMESTAMP(6) WHERE"+
		" t.id IN ("+list(ids)+
		") AND version = 0 AND status = 0", args...)
}

func (b *bench) settle(f form, ids []int64) error {
	finish := " finish_time = UTC_TIMESTAMP(6),"
	if f.generated {
		finish = ""
	}
	return b.exec("UPDATE " + f.table() + " t FORCE INDEX (PRIMARY) SET status = 1, version = version + 1," +
		" due_time = UTC_TIMESTAMP(6)," +
		finish + " error_stack = NULL, errors = NULL, update_time = UTC_TIMESTAMP(6) WHERE t.id IN (" +
		list(ids) + ") AND version = 1 AND status = 3")
}

var counted = []string{"Innodb_os_log_written", "Innodb_rows_read", "Handler_read_next", "Handler_read_key"}

func (b *bench) status() (map[string]int64, error) {
	rows, err := b.db.QueryContext(b.ctx, "SHOW GLOBAL STATUS WHERE Variable_name IN"+
		" ('"+strings.Join(counted, "', '")+"')")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	found := map[string]int64{}
	for rows.Next() {
		var name string
		var n int64
		if err := rows.Scan(&name, &n); err != nil {
			return nil, err
		}
		found[name] = n
	}
	return found, rows.Err()
}

// timed takes a piece of work.
func (b *bench) timed(do func() error) (time.Duration, error) {
	begin := time.Now()
	err := do()
	return time.Since(begin), err
}

func median(of []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(of))
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)/2]
}

func fastest(of []time.Duration) time.Duration { return slices.Min(of) }

func ms(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()*1000) }

// cpu is the processor time that the server has taken, in steps of 10 ms.
func (b *bench) cpu() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", b.pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+2:]))
	var user, system int
	_, _ = fmt.Sscan(fields[11], &user)
	_, _ = fmt.Sscan(fields[12], &system)
	return time.Duration(user+system) * 10 * time.Millisecond
}

func (b *bench) printf(format string, args ...any) { _, _ = fmt.Fprintf(b.out, format, args...) }
