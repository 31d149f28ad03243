package fault

import (
	"context"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/test/chaos/fleet"
	"github.com/delaytask/delaytask/test/chaos/role"
)

const (
	burstIn   = 15 * time.Second
	burstLook = 100 * time.Millisecond
	sample    = 100 // of the burst's tasks
)

// burst lets thousands of tasks be due in the same millisecond. It returns when all of them are in the table at once.
func burst(ctx context.Context, w *World, s *fleet.Slot) (Scar, End, error) {
	life := s.Life()
	if !s.Ask(role.BurstSignal) {
		return Scar{}, nil, ErrNothing
	}
	ctx, cancel := context.WithTimeout(ctx, burstIn)
	defer cancel()
	for wait(ctx, burstLook) {
		ids, all, err := dueAtOnce(ctx, w)
		if err == nil && all >= role.Burst { // others may have put the server out of reach
			return Scar{IDs: ids, Saw: fmt.Sprintf("%d of %s", all, life)}, nil, nil
		}
	}
	return Scar{}, nil, ErrNothing
}

// dueAtOnce returns some of the tasks that are due in the moment in which most are, and how many there are.
func dueAtOnce(ctx context.Context, w *World) (ids []int64, all int, err error) {
	const query = "SELECT id, most.n FROM delay_task_message JOIN (SELECT due_time AS at, COUNT(*) AS n FROM delay_task_message" +
		" WHERE status = 0 GROUP BY due_time ORDER BY n DESC LIMIT 1) AS most ON due_time = most.at WHERE status = 0 LIMIT ?"
	rows, err := w.Admin.QueryContext(ctx, query, sample)
	if err != nil {
		return nil, 0, err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id, &all); err != nil {
			return nil, 0, err
		}
		ids = append(ids, id)
	}
	return ids, all, rows.Err()
}
