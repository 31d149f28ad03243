package store

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// Processes reads what people call processes: see [Nodes].
type Processes interface {
	Processes(ctx context.Context, ids []int64) ([]row.Process, error)
}

// nameWait bounds the wait for names. Anyone may lock their table, and no rescue and no reader waits for that.
const nameWait = 250 * time.Millisecond

// NameProcesses adds to rows what people call the processes of their executors. Where that cannot be read, or a process
// is not known, its rows stay as they are.
func NameProcesses(ctx context.Context, s Processes, rows []row.Row) error {
	var ids []int64
	for i := range rows {
		if rows[i].Executor.Process != 0 {
			ids = append(ids, rows[i].Executor.Process)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, nameWait)
	defer cancel()
	found, err := s.Processes(ctx, row.Distinct(ids))
	names := make(map[int64]string, len(found))
	for _, p := range found {
		names[p.ID] = p.String()
	}
	for i := range rows {
		rows[i].Process = names[rows[i].Executor.Process]
	}
	return err
}
