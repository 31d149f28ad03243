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
type alter struct{ added bool }

func (a *alter) Begin(ctx context.Context, w *World, _ *rand.Rand) (Scar, error) {
	_, err := w.Admin.ExecContext(ctx, "ALTER TABLE delay_task_message ADD COLUMN chaos_column INT NULL")
	a.added = err == nil
	return Scar{}, err
}

func (a *alter) End(ctx context.Context, w *World) error {
	for a.added {
		_, err := w.Admin.ExecContext(ctx, "ALTER TABLE delay_task_message DROP COLUMN chaos_column")
		if !gaveWay(err) {
			return err
		}
	}
	return nil
}

// byHand does what people do with a table: it inserts a row, puts one off, and deletes one. What it inserts and deletes is noted
// as a save and a cancel whose caller got no answer.
type byHand struct{ momentary }

func (byHand) Begin(ctx context.Context, w *World, r *rand.Rand) (Scar, error) {
	var scar Scar
	for _, doomed := range []bool{false, true} {
		op := fmt.Sprintf("hand/%d", r.Int64())
		body := op + " succeed 0"
		delay := time.Duration(r.Int64N(int64(2 * time.Second))).Truncate(time.Millisecond)
		err := w.Fleet.Note(journal.Event{Node: "hand", Kind: journal.CallSave, Op: op, Tag: role.Tags[0], Body: body})
		if err != nil {
			return scar, err
		}
		res, err := w.Hand.ExecContext(ctx, "INSERT INTO delay_task_message (tag, message_body, delay_time) VALUES (?, ?, ?)",
			role.Tags[0], body, delay.Milliseconds())
		if err != nil {
			return scar, err
		}
		id, err := res.LastInsertId()
		if err != nil {
			return scar, err
		}
		scar.IDs = append(scar.IDs, id)
		if !doomed {
			continue
		}
		wait(ctx, delay) // so that it may be executing by then
		if err := w.Fleet.Note(journal.Event{Node: "hand", Kind: journal.CallCancel, Op: op + "/delete", ID: id}); err != nil {
			return scar, err
		}
		if _, err := w.Hand.ExecContext(ctx, "DELETE FROM delay_task_message WHERE id = ? AND status IN (0, 3)", id); err != nil {
			return scar, err
		}
	}
	_, err := w.Hand.ExecContext(ctx, "UPDATE delay_task_message SET due_time = due_time + INTERVAL 1 SECOND"+
		" WHERE status = 0 AND due_time > UTC_TIMESTAMP(6) LIMIT 3")
	return scar, err
}
