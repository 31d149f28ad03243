package fault

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"
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

// holder is somebody's open transaction that has locked rows.
type holder struct{ tx *sql.Tx }

const heldRows = 5

func (h *holder) Begin(ctx context.Context, w *World, _ *rand.Rand) (Scar, error) {
	ids, err := unfinished(ctx, w, heldRows)
	if err != nil || len(ids) == 0 {
		return Scar{}, nothing(err)
	}
	if h.tx, err = w.Admin.BeginTx(context.WithoutCancel(ctx), nil); err != nil {
		return Scar{}, err
	}
	err = lockRows(ctx, h.tx, ids)
	return Scar{IDs: ids}, err
}

func (h *holder) End(context.Context, *World) error {
	if h.tx == nil {
		return nil
	}
	_ = h.tx.Rollback() // a server that went away has done so
	return nil
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
type snapshot struct{ conn *sql.Conn }

func (s *snapshot) Begin(ctx context.Context, w *World, _ *rand.Rand) (Scar, error) {
	var err error
	if s.conn, err = w.Admin.Conn(ctx); err != nil {
		return Scar{}, err
	}
	_, err = s.conn.ExecContext(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	return Scar{}, err
}

func (s *snapshot) End(ctx context.Context, _ *World) error {
	if s.conn == nil {
		return nil
	}
	defer s.conn.Close()
	_, err := s.conn.ExecContext(ctx, "ROLLBACK")
	return err
}

// quarrel locks pairs of rows in every order, so that the server has to choose victims.
type quarrel struct {
	stop    context.CancelFunc
	parties sync.WaitGroup
}

const quarrellers = 4

func (q *quarrel) Begin(ctx context.Context, w *World, r *rand.Rand) (Scar, error) {
	ids, err := unfinished(ctx, w, 20)
	if err != nil || len(ids) < 2 {
		return Scar{}, nothing(err)
	}
	ctx, q.stop = context.WithCancel(ctx)
	for range quarrellers {
		own := rand.New(rand.NewPCG(r.Uint64(), 0))
		q.parties.Go(func() {
			for ctx.Err() == nil {
				fight(ctx, w, own)
			}
		})
	}
	return Scar{IDs: ids}, nil
}

func (q *quarrel) End(context.Context, *World) error {
	if q.stop != nil {
		q.stop()
	}
	q.parties.Wait()
	return nil
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
