package fault

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/test/chaos/role"
)

// unfinished returns ids of tasks that will change soon.
func unfinished(ctx context.Context, w *World, most int) (ids []int64, err error) {
	rows, err := w.Admin.QueryContext(ctx, "SELECT id FROM delay_task_message WHERE status IN (0, 3) ORDER BY due_time LIMIT ?", most)
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

// lockSome is somebody's open transaction that has locked rows.
func lockSome(ctx context.Context, w *World, _ *rand.Rand) (Scar, End, error) {
	ids, err := unfinished(ctx, w, heldRows)
	if err != nil || len(ids) == 0 {
		return Scar{}, nil, nothing(err)
	}
	tx, err := w.Admin.BeginTx(context.WithoutCancel(ctx), nil)
	if err != nil {
		return Scar{}, nil, err
	}
	return Scar{IDs: ids}, func(context.Context) error {
		_ = tx.Rollback() // a server that went away has done so
		return nil
	}, lockRows(ctx, tx, ids)
}

func lockRows(ctx context.Context, tx *sql.Tx, ids []int64) error {
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
	rows, err := tx.QueryContext(ctx, "SELECT id FROM delay_task_message FORCE INDEX (PRIMARY) WHERE id IN ("+list+") FOR UPDATE")
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
func snapshot(ctx context.Context, w *World, _ *rand.Rand) (Scar, End, error) {
	conn, err := w.Admin.Conn(ctx)
	if err != nil {
		return Scar{}, nil, err
	}
	_, err = conn.ExecContext(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	return Scar{}, func(ctx context.Context) error {
		defer conn.Close()
		_, err := conn.ExecContext(ctx, "ROLLBACK")
		return err
	}, err
}

const quarrellers = 4

// quarrel locks pairs of rows in every order, so that the server has to choose victims.
func quarrel(ctx context.Context, w *World, r *rand.Rand) (Scar, End, error) {
	ids, err := unfinished(ctx, w, 20)
	if err != nil || len(ids) < 2 {
		return Scar{}, nil, nothing(err)
	}
	ctx, stop := context.WithCancel(ctx)
	var parties sync.WaitGroup
	for range quarrellers {
		own := rand.New(rand.NewPCG(r.Uint64(), 0))
		parties.Go(func() {
			for ctx.Err() == nil {
				fight(ctx, w, own)
			}
		})
	}
	return Scar{IDs: ids}, func(context.Context) error {
		stop()
		parties.Wait()
		return nil
	}, nil
}

// fight ends with whatever the server says: being the victim is what it is for.
func fight(ctx context.Context, w *World, r *rand.Rand) {
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

// alter changes the table while it is in use.
func alter(ctx context.Context, w *World, _ *rand.Rand) (Scar, End, error) {
	if _, err := w.Admin.ExecContext(ctx, "ALTER TABLE delay_task_message ADD COLUMN chaos_column INT NULL"); err != nil {
		return Scar{}, nil, err
	}
	return Scar{}, func(ctx context.Context) error {
		for {
			_, err := w.Admin.ExecContext(ctx, "ALTER TABLE delay_task_message DROP COLUMN chaos_column")
			if !gaveWay(err) {
				return err
			}
		}
	}, nil
}

// byHand does what people do with a table: it inserts a row, puts one off, and deletes one. What it inserts and deletes
// is noted as a save and a cancel whose caller got no answer.
func byHand(ctx context.Context, w *World, r *rand.Rand) (scar Scar, _ End, _ error) {
	for _, doomed := range []bool{false, true} {
		op := fmt.Sprintf("hand/%d", r.Int64())
		body := op + " succeed 0"
		delay := time.Duration(r.Int64N(int64(2 * time.Second))).Truncate(time.Millisecond)
		err := w.Fleet.Note(journal.Event{Node: "hand", Kind: journal.CallSave, Op: op, Tag: role.Tags[0], Body: body})
		if err != nil {
			return scar, nil, err
		}
		res, err := w.Hand.ExecContext(ctx, "INSERT INTO delay_task_message (tag, message_body, delay_time) VALUES (?, ?, ?)",
			role.Tags[0], body, delay.Milliseconds())
		if err != nil {
			return scar, nil, err
		}
		id, err := res.LastInsertId()
		if err != nil {
			return scar, nil, err
		}
		scar.IDs = append(scar.IDs, id)
		if !doomed {
			continue
		}
		wait(ctx, delay) // so that it may be executing by then
		if err := w.Fleet.Note(journal.Event{Node: "hand", Kind: journal.CallCancel, Op: op + "/delete", ID: id}); err != nil {
			return scar, nil, err
		}
		if _, err := w.Hand.ExecContext(ctx, "DELETE FROM delay_task_message WHERE id = ? AND status IN (0, 3)", id); err != nil {
			return scar, nil, err
		}
	}
	_, err := w.Hand.ExecContext(ctx, "UPDATE delay_task_message SET due_time = due_time + INTERVAL 1 SECOND"+
		" WHERE status = 0 AND due_time > UTC_TIMESTAMP(6) LIMIT 3")
	return scar, nil, err
}
