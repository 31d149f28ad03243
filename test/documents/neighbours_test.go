package documents

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/migrations"
)

const (
	neighbourTags = 10 // n.0 to n.9; statements name n.4
	mostRows      = 1000
)

var (
	changes  = regexp.MustCompile(`^(INSERT|UPDATE|DELETE)\b`)
	ownTable = regexp.MustCompile(`^CREATE TABLE `)
	bounds   = regexp.MustCompile(`^(START TRANSACTION|COMMIT)$`)
	ofTasks  = regexp.MustCompile(`\b(yb_)?delay_task_message\b`)
)

// crowded returns a database with 3,500 tasks in all statuses, of which the tag n.4 has half.
func crowded(t *testing.T, d dbtest.Database) *sql.DB {
	t.Helper()
	db, kind, err := sqlstore.Connect(t.Context(), d.DSN)
	servertest.OK(t, err)
	t.Cleanup(func() { _ = db.Close() })
	servertest.OK(t, migrations.Up(t.Context(), db.DB, kind))
	// Unfinished tasks are due in a day, finished ones have ended 36 hours ago.
	const fill = `INSERT INTO delay_task_message
		(tag, task_key, message_body, status, expected_time, due_time)
		WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 699),
			five (k, h) AS (SELECT 0, 24 UNION SELECT 1, -36 UNION SELECT 2, -36 UNION SELECT 3, 24 UNION SELECT 4, -36)
		SELECT CONCAT('n.', IF(i % 2 = 0, 4, i DIV 2 % 10)), IF(i % 7 = 0, CONCAT('key-', i, '-', k), NULL), '{}', k,
			UTC_TIMESTAMP(6) + INTERVAL h * 3600 + i SECOND, UTC_TIMESTAMP(6) + INTERVAL h * 3600 + i SECOND
		FROM n STRAIGHT_JOIN five`
	for _, s := range []string{fill, "ANALYZE TABLE delay_task_message"} {
		_, err = db.ExecContext(t.Context(), s)
		servertest.OK(t, err)
	}
	return db.DB
}

// Each block of a page that changes rows runs in a transaction that stays open, at the isolation level that is the
// default. Beside it tasks of every tag are saved, start and complete.
func TestNoChangeOfThePagesHoldsUpATag(t *testing.T) {
	t.Parallel()
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		t.Parallel()
		db := crowded(t, d)
		var one int64
		servertest.OK(t, db.QueryRowContext(t.Context(),
			"SELECT MIN(id) FROM delay_task_message WHERE tag = 'n.4' AND status = 0").Scan(&one))
		own := strings.NewReplacer("order.close", "n.4", "mail.send", "n.4", "911622238282515348", fmt.Sprint(one))
		client, err := db.Conn(t.Context())
		servertest.OK(t, err)
		defer client.Close()
		ran := 0
		for _, page := range documents(t, "*.md", "docs/*.md") {
			for _, b := range page.blocks() {
				if b.language == "sql" {
					ran += holds(t, db, client, b, own)
				}
			}
		}
		if ran < 15 {
			t.Errorf("%d statements of the pages change rows", ran)
		}
	})
}

// holds runs a block and rolls it back. Tables that it makes stay, and so do its variables.
func holds(t *testing.T, db *sql.DB, client *sql.Conn, b block, own *strings.Replacer) (changed int) {
	ctx := t.Context()
	exec := func(statement string) (rows int64) {
		res, err := client.ExecContext(ctx, statement)
		if err != nil {
			t.Fatalf("%s: %v in\n%s", b.at, err, statement)
		}
		rows, err = res.RowsAffected()
		servertest.OK(t, err)
		return rows
	}
	exec("SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
	statements := slices.DeleteFunc(b.statements(), func(s string) bool {
		if ownTable.MatchString(s) {
			exec(s)
			if strings.Contains(s, "yb_delay_task_message") {
				exec(`INSERT INTO yb_delay_task_message (tag, message_body, status, delay_time, expected_time)
					SELECT tag, '{}', ELT(1 + id % 3, 0, 3, 10), 60, UTC_TIMESTAMP() + INTERVAL 9 HOUR
					FROM delay_task_message`)
			}
		}
		return ownTable.MatchString(s) || bounds.MatchString(s)
	})
	exec("START TRANSACTION")
	for _, s := range statements {
		rows := exec(own.Replace(s))
		if changes.MatchString(s) {
			changed++
			if ofTasks.MatchString(s) && (rows == 0 || rows > mostRows) {
				t.Errorf("%s: %d rows, want 1 to %d in\n%s", b.at, rows, mostRows, s)
			}
		}
	}
	if changed > 0 {
		if waiting := waits(t, db); len(waiting) > 0 {
			t.Errorf("%s: tasks of %q wait for\n%s", b.at, waiting, b.text)
		}
	}
	exec("ROLLBACK")
	return changed
}

// waits returns the tags of which no task can be saved, claimed and completed now.
func waits(t *testing.T, db *sql.DB) (waiting []string) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for n := range neighbourTags {
		for _, key := range []string{"NULL", fmt.Sprintf("'key-%d'", n)} {
			all.Go(func() {
				tag := fmt.Sprintf("n.%d", n)
				err := lives(t.Context(), db, tag, key)
				mu.Lock()
				defer mu.Unlock()
				if refused, ok := errors.AsType[*mysql.MySQLError](err); ok && refused.Number == 1205 {
					waiting = append(waiting, tag+" key "+key)
				} else if err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	slices.Sort(waiting)
	return waiting
}

// lives does to a row what a process does from a save to the completion, and rolls back.
func lives(ctx context.Context, db *sql.DB, tag, key string) error {
	client, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	id := delaytask.NewID()
	for _, s := range []string{
		"SET SESSION innodb_lock_wait_timeout = 1",
		"START TRANSACTION",
		fmt.Sprintf("INSERT INTO delay_task_message (id, tag, task_key, message_body, delay_time)"+
			" VALUES (%d, '%s', %s, '{}', 300)", id, tag, key),
		fmt.Sprintf("UPDATE delay_task_message SET status = 3, due_time = UTC_TIMESTAMP(6) + INTERVAL 15 SECOND"+
			" WHERE id = %d", id),
		fmt.Sprintf("UPDATE delay_task_message SET status = 1, due_time = UTC_TIMESTAMP(6)"+
			" WHERE id = %d", id),
	} {
		if _, err = client.ExecContext(ctx, s); err != nil {
			break
		}
	}
	_, undo := client.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")
	return errors.Join(err, undo)
}

// Pairs of statements, repeated as the pages say, reach all rows that they are about and no other.
func TestPiecesOfThePagesReachAllTheirRows(t *testing.T) {
	t.Parallel()
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		t.Parallel()
		ctx, db := t.Context(), crowded(t, d)
		client, err := db.Conn(ctx)
		servertest.OK(t, err)
		defer client.Close()
		own := strings.NewReplacer("order.close", "n.4", "mail.send", "n.4")
		for _, pair := range []struct {
			page, heading, text string // text tells the second statement of the pair
			count               string // rows that are as they must be
			want                int
		}{
			{"docs/database.md", "## Growth, retention, archive", "INSERT IGNORE",
				"archive WHERE status IN (1, 2, 4)", 2100},
			{"docs/operations.md", "### After a failover that lost commits", "1000000",
				"message WHERE version = 1000000 AND status IN (0, 3)", 1400},
			{"docs/database.md", "### Change", "m.status = 0",
				"message WHERE tag = 'n.4' AND status = 0 AND version IN (1, 1000000)", 770},
			{"docs/database.md", "## Growth, retention, archive", "DELETE m",
				"message WHERE tag <> 'n.4' OR status <> 1", 3115},
		} {
			all := section(t, pair.page, pair.heading)
			at := slices.IndexFunc(all, func(s string) bool { return strings.Contains(s, pair.text) })
			if pair.text == "INSERT IGNORE" {
				_, err := client.ExecContext(ctx, all[at-3]) // the table
				servertest.OK(t, err)
			}
			_, err := client.ExecContext(ctx, "SET @after = 0")
			servertest.OK(t, err)
			for rows := int64(1); rows > 0; {
				for _, s := range all[at-1 : at+1] {
					res, err := client.ExecContext(ctx, own.Replace(s))
					servertest.OK(t, err)
					rows, err = res.RowsAffected()
					servertest.OK(t, err)
				}
			}
			var n int
			servertest.OK(t, client.QueryRowContext(ctx, "SELECT COUNT(*) FROM delay_task_"+pair.count).Scan(&n))
			if n != pair.want {
				t.Errorf("%s: %d rows, want %d", pair.text, n, pair.want)
			}
		}
	})
}

// The look of the page finds the unfinished task with a key, whatever characters the key has.
func TestLookOfThePageFindsATaskByItsKey(t *testing.T) {
	t.Parallel()
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		t.Parallel()
		db := crowded(t, d)
		look := section(t, "docs/database.md", "### Look")[0]
		for _, key := range []string{"order-42", "订单-42", "delaytask-app:shop|order-42"} {
			res, err := db.ExecContext(t.Context(),
				"INSERT INTO delay_task_message (tag, task_key, delay_time) VALUES ('order.close', ?, 1)", key)
			servertest.OK(t, err)
			want, err := res.LastInsertId()
			servertest.OK(t, err)
			var got int64
			servertest.OK(t, db.QueryRowContext(t.Context(),
				"SELECT id FROM ("+strings.ReplaceAll(look, "order-42'", key+"'")+") AS look").Scan(&got))
			if got != want {
				t.Errorf("key %s: found %d, want %d", key, got, want)
			}
		}
	})
}
