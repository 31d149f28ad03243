// Package audit lets a database write down every transition itself, in the transaction that makes it. So what the judge
// reads there is what the database did.
package audit

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/journal"
)

const node = "database"

// SYSDATE is when the row is written, while other functions return when the statement began, which may have waited for
// a lock. So only SYSDATE gives the order of a row's transitions. It has no UTC form, so the time zone is subtracted.
const now = "SYSDATE(6) - INTERVAL TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW()) SECOND"

// Single rows of VALUES: an INSERT of a SELECT locks the counter of the audit until its statement ends, and would make
// saves and results wait for each other.
//
// The port names the member of a cluster. So no two members insert the same key, whose collision would refuse the
// transition itself.
const noted = "INSERT INTO chaos_audit (member, at, task, version, status, attempt, crash_count, executor, due," +
	" expected, moved, tag, task_key, body) VALUES (@@port, " + now + ", "

var newRow = "NEW.id, NEW.version, NEW.status, NEW.attempt, NEW.crash_count, " + executor("NEW.") + ", NEW.due_time," +
	" NEW.expected_time, "

// executor is the text that journals of processes have.
func executor(of string) string {
	return fmt.Sprintf("CASE WHEN %[1]sprocess = 0 THEN '' ELSE CONCAT(IF(%[1]sclaim < 0, 'pop:', ''),"+
		" LOWER(LPAD(HEX(%[1]sprocess), 16, '0')), ':', ABS(%[1]sclaim)) END", of)
}

var statements = []string{
	`CREATE TABLE chaos_audit (member INT UNSIGNED NOT NULL, seq BIGINT NOT NULL AUTO_INCREMENT,
	at DATETIME(6) NOT NULL, moved TINYINT NOT NULL, task BIGINT UNSIGNED NOT NULL, version BIGINT UNSIGNED NOT NULL,
	status TINYINT UNSIGNED NOT NULL, attempt INT UNSIGNED NOT NULL,
	crash_count INT UNSIGNED NOT NULL, executor VARCHAR(255) NOT NULL, due DATETIME(6) NULL, expected DATETIME(6) NULL,
	tag VARCHAR(128) NOT NULL, task_key VARCHAR(255) NOT NULL, body TEXT NOT NULL,
	PRIMARY KEY (member, seq), KEY (seq)) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin`,
	// Runs of schedules are judged by the table.
	trigger("insert", "IF NEW.schedule IS NULL THEN "+
		noted+newRow+"0, NEW.tag, COALESCE(NEW.task_key, ''), NEW.message_body); END IF;"),
	trigger("update", "IF NEW.schedule IS NULL AND (NEW.version <> OLD.version OR NEW.status <> OLD.status"+
		" OR NOT NEW.due_time <=> OLD.due_time) THEN "+
		noted+newRow+"NEW.version = OLD.version AND NEW.status = OLD.status, '', '', ''); END IF;"),
	// A delete of a task that is not finished cancels it.
	trigger("delete", fmt.Sprintf("IF OLD.schedule IS NULL AND OLD.status IN (%d, %d) THEN "+noted+
		"OLD.id, OLD.version + 1, %d, OLD.attempt, OLD.crash_count, %s, OLD.due_time, OLD.expected_time, 0,"+
		" '', '', ''); END IF;", row.Pending, row.Executing, row.Cancelled,
		executor("OLD."))),
}

func trigger(event, body string) string {
	return "CREATE TRIGGER chaos_" + event + " AFTER " + event +
		" ON delay_task_message FOR EACH ROW BEGIN " + body + " END"
}

const triggers = 3

// Install begins the audit of a database that has its tables.
func Install(ctx context.Context, db *sql.DB) error {
	for _, s := range statements {
		if _, err := db.ExecContext(ctx, s); err != nil {
			return fmt.Errorf("install the audit: %w", err)
		}
	}
	return nil
}

// Writes returns the transitions, and the leases that were moved, in their order. Members of a cluster count their own
// events and share a clock, which orders the events of different members.
func Writes(ctx context.Context, db *sql.DB) ([]journal.Event, error) {
	return read(ctx, db, "SELECT at, moved, task, tag, task_key, body, version, status, attempt, crash_count,"+
		" executor, due, expected FROM chaos_audit ORDER BY at, seq", journal.Write)
}

func Rows(ctx context.Context, db *sql.DB) ([]journal.Event, error) {
	return read(ctx, db, "SELECT UTC_TIMESTAMP(6), 0, id, tag, COALESCE(task_key, ''), message_body, version, status,"+
		" attempt, crash_count, "+executor("")+", due_time, expected_time FROM delay_task_message"+
		" WHERE schedule IS NULL ORDER BY id", journal.Row)
}

func read(ctx context.Context, db *sql.DB, query string, kind journal.Kind) ([]journal.Event, error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("read the audit: %w", err)
	}
	defer rows.Close()
	var events []journal.Event
	for rows.Next() {
		e := journal.Event{Node: node, Kind: kind}
		var at string
		var due, expected sql.NullString
		var moved bool
		var status row.Status
		err := rows.Scan(&at, &moved, &e.ID, &e.Tag, &e.Key, &e.Body, &e.Version, &status, &e.Attempt, &e.CrashCount,
			&e.Executor, &due, &expected)
		if err != nil {
			return nil, fmt.Errorf("read the audit: %w", err)
		}
		if moved {
			e.Kind = journal.Lease
		}
		e.Status = status.String()
		if e.At, err = parse(at); err != nil {
			return nil, err
		}
		if e.Due, err = parse(due.String); err != nil {
			return nil, err
		}
		if e.Expected, err = parse(expected.String); err != nil {
			return nil, err
		}
		events = append(events, e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read the audit: %w", err)
	}
	return events, nil
}

// parse reads a column, which is UTC; an empty one is the zero time.
func parse(column string) (time.Time, error) {
	if column == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse("2006-01-02 15:04:05.999999", column)
	if err != nil {
		return at, fmt.Errorf("read the audit: %w", err)
	}
	return at, nil
}

const look = 50 * time.Millisecond

// Await returns when a member of a cluster keeps the audit that was installed on another one.
func Await(ctx context.Context, member *sql.DB) error {
	const count = "SELECT COUNT(*) FROM information_schema.triggers WHERE trigger_schema = DATABASE()"
	for {
		var kept int
		if err := member.QueryRowContext(ctx, count).Scan(&kept); err != nil {
			return fmt.Errorf("wait for the audit: %w", err)
		}
		if kept == triggers {
			return nil
		}
		if err := lateness.Pass(ctx, look); err != nil {
			return err
		}
	}
}

// Agree returns when all members of a cluster show the same tasks and the same audit, so that each of them can be read.
// It returns an error when ctx ends before. A member without an answer may be starting.
func Agree(ctx context.Context, members []*sql.DB) error {
	for {
		seen := make([]string, len(members))
		silent := make([]error, len(members))
		for i, m := range members {
			seen[i], silent[i] = digest(ctx, m)
		}
		err := errors.Join(silent...)
		if err == nil && len(slices.Compact(slices.Clone(seen))) <= 1 {
			return nil
		}
		if ended := lateness.Pass(ctx, look); ended != nil {
			return fmt.Errorf("the members show different tables, with sums of %q: %w", seen, errors.Join(err, ended))
		}
	}
}

func digest(ctx context.Context, member *sql.DB) (sums string, err error) {
	const sum = "SELECT CONCAT_WS(' '," +
		"(SELECT SUM(CRC32(CONCAT_WS('/', id, version, status, crash_count, process, claim, message_body)))" +
		" FROM delay_task_message)," +
		"(SELECT SUM(CRC32(CONCAT_WS('/', member, seq, task, version, status, executor))) FROM chaos_audit))"
	err = member.QueryRowContext(ctx, sum).Scan(&sums)
	return sums, err
}
