package fault

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/delaytask/delaytask/internal/journal"
	"github.com/delaytask/delaytask/test/chaos/role"
)

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

// byHand does what people do with a table: it inserts a row, puts one off, and deletes one. What it inserts and deletes is noted
// as a save and a cancel whose caller got no answer.
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
