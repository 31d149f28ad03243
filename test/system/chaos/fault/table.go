package fault

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/test/system/chaos/role"
)

// unfinished returns ids of tasks that will change soon.
func unfinished(ctx context.Context, w *World, most int) (ids []int64, err error) {
	const query = "SELECT id FROM delay_task_message WHERE status IN (0, 3) ORDER BY due_time LIMIT ?"
	rows, err := w.Admin.QueryContext(ctx, query, most)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

const heldRows = 5

func lockSome(ctx context.Context, w *World, _ *rand.Rand) (Residue, End, error) {
	ids, err := unfinished(ctx, w, heldRows)
	if err != nil || len(ids) == 0 {
		return Residue{}, nil, nothing(err)
	}
	tx, err := w.Admin.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return Residue{}, nil, err
	}
	return Residue{IDs: ids}, func(context.Context) error {
		_ = tx.Rollback() // a server that went away has done so
		return nil
	}, lockRows(ctx, tx, ids)
}

func lockRows(ctx context.Context, tx *sql.Tx, ids []int64) error {
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
	query := "SELECT id FROM delay_task_message FORCE INDEX (PRIMARY) WHERE id IN (" + list + ") FOR UPDATE"
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() { // each is locked as it is read
		continue
	}
	return rows.Err()
}

// snapshot is a transaction that reads what was at its begin, so that the server can purge nothing.
func snapshot(ctx context.Context, w *World, _ *rand.Rand) (Residue, End, error) {
	conn, err := w.Admin.Conn(ctx)
	if err != nil {
		return Residue{}, nil, err
	}
	_, err = conn.ExecContext(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	return Residue{}, func(ctx context.Context) error {
		defer conn.Close()
		_, err := conn.ExecContext(ctx, "ROLLBACK")
		return err
	}, err
}

const contenders = 4

// lockConflicts locks rows in random order, so that transactions deadlock.
func lockConflicts(ctx context.Context, w *World, r *rand.Rand) (Residue, End, error) {
	ids, err := unfinished(ctx, w, 20)
	if err != nil || len(ids) < 2 {
		return Residue{}, nil, nothing(err)
	}
	ctx, stop := context.WithCancel(ctx)
	var parties sync.WaitGroup
	for range contenders {
		own := rand.New(rand.NewPCG(r.Uint64(), 0))
		parties.Go(func() {
			for ctx.Err() == nil {
				conflict(ctx, w, own)
			}
		})
	}
	return Residue{IDs: ids}, func(context.Context) error {
		stop()
		parties.Wait()
		return nil
	}, nil
}

// conflict ignores the server's errors: to be chosen to end a deadlock is its purpose.
func conflict(ctx context.Context, w *World, r *rand.Rand) {
	ids, err := unfinished(ctx, w, 20)
	if err != nil || len(ids) < 2 {
		wait(ctx, 50*time.Millisecond)
		return
	}
	tx, err := w.Admin.BeginTx(ctx, nil)
	if err != nil {
		return
	}
	defer tx.Rollback()
	r.Shuffle(len(ids), func(i, j int) { ids[i], ids[j] = ids[j], ids[i] })
	for _, id := range ids[:min(len(ids), 6)] {
		if lockRows(ctx, tx, []int64{id}) != nil {
			return
		}
		wait(ctx, 5*time.Millisecond)
	}
}

func nothing(err error) error {
	if err == nil {
		return ErrNothing
	}
	return err
}

func alter(ctx context.Context, w *World, _ *rand.Rand) (Residue, End, error) {
	const add = "ALTER TABLE delay_task_message ADD COLUMN chaos_column INT NULL"
	if _, err := w.Admin.ExecContext(ctx, add); err != nil {
		return Residue{}, nil, err
	}
	return Residue{}, func(ctx context.Context) error {
		for {
			_, err := w.Admin.ExecContext(ctx, "ALTER TABLE delay_task_message DROP COLUMN chaos_column")
			if !gaveWay(err) {
				return err
			}
		}
	}, nil
}

// byHand does what operators do with a table: it inserts a row, postpones one, and deletes one. It notes the insert and
// the delete as a save and a cancel without an answer.
func byHand(ctx context.Context, w *World, r *rand.Rand) (residue Residue, _ End, _ error) {
	const (
		insert = "INSERT INTO delay_task_message (tag, message_body, delay_time) VALUES (?, ?, ?)"
		remove = "DELETE FROM delay_task_message WHERE id = ? AND status IN (0, 3)"
	)
	for _, doomed := range []bool{false, true} {
		op := fmt.Sprintf("hand/%d", r.Int64())
		body := op + " succeed 0"
		delay := time.Duration(r.Int64N(int64(2 * time.Second))).Truncate(time.Millisecond)
		err := w.Fleet.Note(journal.Event{Node: "hand", Kind: journal.CallSave, Op: op, Tag: role.Tags[0], Body: body})
		if err != nil {
			return residue, nil, err
		}
		res, err := w.Hand.ExecContext(ctx, insert, role.Tags[0], body, delay.Milliseconds())
		if err != nil {
			return residue, nil, err
		}
		id, err := res.LastInsertId()
		if err != nil {
			return residue, nil, err
		}
		residue.IDs = append(residue.IDs, id)
		if !doomed {
			continue
		}
		wait(ctx, delay) // so that it may be executing by then
		call := journal.Event{Node: "hand", Kind: journal.CallCancel, Op: op + "/delete", ID: id}
		if err := w.Fleet.Note(call); err != nil {
			return residue, nil, err
		}
		if _, err := w.Hand.ExecContext(ctx, remove, id); err != nil {
			return residue, nil, err
		}
	}
	_, err := w.Hand.ExecContext(ctx, "UPDATE delay_task_message SET due_time = due_time + INTERVAL 1 SECOND"+
		" WHERE status = 0 AND due_time > UTC_TIMESTAMP(6) LIMIT 3")
	return residue, nil, err
}

// lies are what the rows of nodes say instead of where and how they are woken: an address where no process or another
// one listens, a key that is refused, or nothing that can be read.
var lies = []string{
	`JSON_SET(wake, '$.address', '169.254.1.1:9')`,
	`JSON_SET(wake, '$.address', 'nowhere')`,
	`JSON_SET(wake, '$.address', (SELECT a FROM (SELECT JSON_UNQUOTE(JSON_EXTRACT(wake, '$.address')) a
		FROM delay_task_node WHERE JSON_VALID(wake) AND wake LIKE '%"key"%' ORDER BY RAND() LIMIT 1) other))`,
	`JSON_SET(wake, '$.key', TO_BASE64('of another process'))`,
	`'{"token":'`,
}

// lie lets the rows of all nodes lie until their next heartbeats.
func lie(ctx context.Context, w *World, r *rand.Rand) (Residue, End, error) {
	told := lies[r.IntN(len(lies))]
	res, err := w.Hand.ExecContext(ctx, "UPDATE delay_task_node SET wake = "+told+" WHERE JSON_VALID(wake)")
	if err != nil {
		return Residue{}, nil, errors.Join(ErrNothing, err) // the server may be away
	}
	n, err := res.RowsAffected()
	if n == 0 {
		err = errors.Join(ErrNothing, err)
	}
	return Residue{Saw: fmt.Sprintf("of %d nodes: %s", n, strings.Join(strings.Fields(told), " "))}, nil, err
}
