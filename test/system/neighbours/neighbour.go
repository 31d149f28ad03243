package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/bench/lateness"
)

// neighbour is what another program does while the load runs.
type neighbour struct {
	name  string
	level string   // of isolation; "": REPEATABLE READ
	tag   bool     // it names one tag, named
	page  []string // its statements are taken from the pages: each that has one of these texts
	sql   []string // its further statements
	moved bool     // the server's address moves: connections made before get no answer any more
	fsync bool     // the server's disk is slow

	statements []string // that are sent, in this order
}

const (
	serializable = "SERIALIZABLE"
	message      = "SELECT id FROM delay_task_message "
	due          = message + "FORCE INDEX (delay_task_message_due) WHERE tag = 'n.4' AND status = "
	ofTag        = " WHERE tag = 'n.4' AND message_body = 'none'"
)

// neighbours are all that are measured. A test holds that each statement of the pages is among them. What changes or
// asks for a lock locks the same at both levels; a plain SELECT locks nothing below SERIALIZABLE.
var neighbours = []neighbour{
	{name: "nothing", sql: []string{"SELECT 1"}}, // shows how much of the figures is the machine's own

	{name: "insert", tag: true, page: []string{"INTO delay_task_message (tag,"}},
	{name: "look", tag: true, level: serializable, page: []string{"LEFT(error_stack, 200)"}},
	{name: "cancel", tag: true, page: []string{"SET status = 4"}},
	{name: "change", tag: true, page: []string{"INTERVAL 10 MINUTE", "SET message_body"}},
	{name: "retry", tag: true, page: []string{"status = 2 AND tag = 'mail.send'", "SET m.status = 0"}},
	{name: "pause", tag: true, page: []string{"delay_task_tag"}},
	{name: "delete", tag: true, page: []string{
		"status = 1 AND tag = 'order.close'", "DELETE m FROM"}},

	{name: "counts", level: serializable, page: []string{"AS oldest_due", "DATE(due_time) AS day"}},
	{name: "overdue", level: serializable, page: []string{"AS overdue"}},
	{name: "statuses", level: serializable, page: []string{
		"AS lease_end", "m.execution_time, m.update_time", "LEFT(m.error_stack, 80)"}},
	{name: "next-day", level: serializable, page: []string{"AS hour, tag, COUNT(*)"}},
	{name: "lateness", level: serializable, page: []string{"FROM delay_task_lateness"}},
	{name: "rollups", level: serializable, page: []string{"FROM delay_task_rollup"},
		sql: []string{"SELECT * FROM delay_task_rollup WHERE span = 1 FOR UPDATE"}},
	{name: "nodes", level: serializable, page: []string{"AS silent_seconds"}},
	{name: "archive", page: []string{"@after = 0", "INTERVAL 3 DAY", "delay_task_archive"}},
	{name: "failover", page: []string{
		"@after = 0", "status IN (0, 3) ORDER BY id", "version + 1000000"}},
	{name: "forget", page: []string{
		"DELETE FROM delay_task_worker", "DELETE FROM delay_task_token", "DELETE FROM delay_task_session",
		"DELETE FROM delay_task_node"}},
	{name: "snapshot", page: []string{"information_schema"}, sql: []string{"SELECT COUNT(*) FROM delay_task_message"}},

	{name: "range-pending", tag: true, sql: []string{due + "0 FOR UPDATE"}},
	{name: "range-completed", tag: true, sql: []string{due + "1 FOR UPDATE"}},
	{name: "range-failed", tag: true, sql: []string{due + "2 FOR UPDATE"}},
	{name: "range-executing", tag: true, sql: []string{due + "3 FOR UPDATE"}},
	{name: "range-cancelled", tag: true, sql: []string{due + "4 FOR UPDATE"}},
	{name: "range-overdue", tag: true, level: serializable, sql: []string{due + "0 AND due_time < UTC_TIMESTAMP(6)"}},
	{name: "tag", tag: true, level: serializable, sql: []string{
		"UPDATE delay_task_message FORCE INDEX (delay_task_message_due) SET priority = 1" + ofTag}},
	// The server chooses how to search: MariaDB reads the whole table, and locks it.
	{name: "tag-any-plan", level: serializable, sql: []string{"UPDATE delay_task_message SET priority = 1" + ofTag}},
	{name: "key", tag: true, sql: []string{
		message + "WHERE active_key = UNHEX(SHA2('none', 256)) FOR UPDATE"}},
	{name: "primary", tag: true, sql: []string{message + "WHERE id BETWEEN {first} AND {last} FOR UPDATE"}},
	{name: "primary-end", sql: []string{message + "WHERE id > {last} AND message_body = 'none' FOR UPDATE"}},
	{name: "status", sql: []string{message + "WHERE status = 3 FOR UPDATE"}},
	{name: "audit", sql: []string{"SELECT * FROM delay_task_audit WHERE id > 0 FOR UPDATE"}},
	{name: "schedules", sql: []string{
		"SELECT * FROM delay_task_schedule FOR UPDATE", "SELECT * FROM delay_task_schedule_run FOR UPDATE"}},
	{name: "tags", sql: []string{"SELECT * FROM delay_task_tag FOR UPDATE"}},

	{name: "lock-audit", sql: []string{"LOCK TABLES delay_task_audit WRITE"}},
	{name: "lock-rollup", sql: []string{"LOCK TABLES delay_task_rollup WRITE"}},
	{name: "lock-schedule", sql: []string{"LOCK TABLES delay_task_schedule WRITE"}},
	{name: "lock-run", sql: []string{"LOCK TABLES delay_task_schedule_run WRITE"}},
	{name: "lock-node", sql: []string{"LOCK TABLES delay_task_node WRITE"}},
	{name: "lock-process", sql: []string{"LOCK TABLES delay_task_process WRITE"}},
	{name: "lock-tag", sql: []string{"LOCK TABLES delay_task_tag WRITE"}},

	{name: "moved-address", moved: true},
	{name: "slow-fsync", fsync: true},
}

var (
	block   = regexp.MustCompile("(?s)```sql\n(.*?)```")
	account = regexp.MustCompile("^(CREATE USER|GRANT) ")
)

// readPages returns the statements of the pages, except for accounts. The Chinese pages have the same ones, which
// test/documents holds.
func readPages(root string) (statements []string, err error) {
	for _, page := range []string{"database.md", "operations.md", "transactions.md"} {
		text, err := os.ReadFile(filepath.Join(root, "docs", page))
		if err != nil {
			return nil, err
		}
		for _, b := range block.FindAllStringSubmatch(string(text), -1) {
			for s := range strings.SplitSeq(b[1], ";\n") {
				if s = strings.TrimSpace(s); s != "" && !account.MatchString(s) {
					statements = append(statements, s)
				}
			}
		}
	}
	return statements, nil
}

func (n *neighbour) has(statement string) bool {
	return slices.ContainsFunc(n.page, func(text string) bool { return strings.Contains(statement, text) })
}

// statements returns what the neighbour sends, about the rows of this table. It makes the tables of the pages.
func (t *table) statements(n neighbour, pages []string) (all []string, err error) {
	own := strings.NewReplacer("order.close", named, "mail.send", named, "911622238282515348", fmt.Sprint(t.first),
		"{first}", fmt.Sprint(t.first), "{last}", fmt.Sprint(t.last))
	for _, s := range pages {
		if !n.has(s) {
			continue
		}
		s = own.Replace(s)
		switch {
		case strings.HasPrefix(s, "CREATE TABLE "):
			s = strings.Replace(s, "CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1)
			if _, err := t.pool.ExecContext(context.Background(), s); err != nil {
				return nil, err
			}
			continue
		case strings.HasPrefix(s, "INSERT INTO delay_task_message"):
			s = strings.ReplaceAll(s, "order-42", "order-43") // the other key is taken
		}
		all = append(all, s)
	}
	if n.page != nil && all == nil {
		return nil, fmt.Errorf("no page has a statement with one of %q: tell %s by another text", n.page, n.name)
	}
	for _, s := range n.sql {
		all = append(all, own.Replace(s))
	}
	return all, nil
}

// hold does what the neighbour does until then, and returns what ends it. A transaction that the database has refused
// because of the load is begun again: refused is how often.
func (t *table) hold(
	ctx context.Context, n neighbour, way *forwarder, until time.Time,
) (release func() error, refused int, err error) {
	switch {
	case n.moved:
		way.move()
		return way.forget, 0, lateness.Pass(ctx, time.Until(until))
	case n.fsync:
		release = func() error { return os.Remove(t.site.slow) }
		if err := os.WriteFile(t.site.slow, nil, 0o600); err != nil {
			return release, 0, err
		}
		return release, 0, lateness.Pass(ctx, time.Until(until))
	}
	c, err := t.pool.Conn(ctx)
	if err != nil {
		return func() error { return nil }, 0, err
	}
	release = func() error {
		_, err := c.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
		_, unlockErr := c.ExecContext(context.WithoutCancel(ctx), "UNLOCK TABLES")
		return errors.Join(err, unlockErr, c.Close())
	}
	level := n.level
	if level == "" {
		level = "REPEATABLE READ"
	}
	for {
		if err = transact(ctx, c, level, n.statements); err == nil || !conflicts(err) || time.Now().After(until) {
			break
		}
		refused++
	}
	if err != nil && !conflicts(err) {
		return release, refused, err
	}
	return release, refused, lateness.Pass(ctx, time.Until(until))
}

func transact(ctx context.Context, c *sql.Conn, level string, statements []string) error {
	begin := []string{"ROLLBACK", "SET SESSION TRANSACTION ISOLATION LEVEL " + level, "START TRANSACTION"}
	for _, s := range append(begin, statements...) {
		if err := readAll(ctx, c, s); err != nil {
			return fmt.Errorf("%w: %s", err, s)
		}
	}
	return nil
}

func readAll(ctx context.Context, c *sql.Conn, statement string) error {
	rows, err := c.QueryContext(ctx, statement)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() { // what is not read may not be locked
	}
	return rows.Err()
}

// conflicts reports whether the load was in the way: a deadlock, a wait that was too long, a row newer than the
// transaction's snapshot.
func conflicts(err error) bool {
	refused, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains([]uint16{1213, 1205, 1020}, refused.Number)
}
