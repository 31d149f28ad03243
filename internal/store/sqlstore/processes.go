package sqlstore

import (
	"context"
	"math"

	"github.com/delaytask/delaytask/internal/row"
)

var processes = newTable(processTable,
	whole64("id", func(p *row.Process) *int64 { return &p.ID }),
	chars("name", func(p *row.Process) *string { return &p.Name }),
	integer("pid", 0, math.MaxInt32, func(p *row.Process) *int { return &p.PID }),
	column[row.Process]{name: "seen_time"},
)

// Introduce implements [store.Nodes].
func (s *Store) Introduce(ctx context.Context, p row.Process) error {
	const op = "introduce the process"
	known, err := s.lanes[apart].execute(ctx, op, s.own.seen(p.ID))
	if known > 0 || err != nil {
		return err
	}
	err = s.lanes[apart].write(ctx, op, s.own.introduce(p))
	if isDuplicate(err) { // by a call whose answer was lost
		return nil
	}
	return err
}

func (d dialect) seen(process int64) clause {
	return clause{"UPDATE " + processTable + d.byID + " SET seen_time = " + d.now + " WHERE id = ?", []any{process}}
}

func (d dialect) introduce(p row.Process) clause {
	return clause{"INSERT INTO " + processTable + " (id, name, pid, seen_time) VALUES (?, " + d.bindText + ", ?, " +
		d.now + ")", []any{p.ID, p.Name, p.PID}}
}

// Processes implements [store.Nodes].
func (s *Store) Processes(ctx context.Context, ids []int64) ([]row.Process, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	all, _, err := readAll(ctx, s.db, s.dialect.processes(ids), processes)
	return all, classify("read the names of processes", err)
}

func (d dialect) processes(ids []int64) clause {
	return clause{sql: "SELECT " + processes.list(d, "", "id", "name", "pid") + " FROM " + processTable + d.byID +
		" WHERE id IN (" + idList(ids) + ") ORDER BY id"}
}

// PurgeProcesses implements [store.Nodes].
func (s *Store) PurgeProcesses(ctx context.Context, before row.Time, limit int) (int, error) {
	if limit <= 0 {
		return 0, nil
	}
	return purge(ctx, s, purging[int64]{
		op: "purge processes", lane: chores,
		old: oldOf(s, place{table: processTable}, func(held []int64) clause {
			return clause{"SELECT t.id FROM " + processTable + " AS t WHERE t.seen_time < ?" +
				without("t.id", idList(held)) + " ORDER BY t.seen_time LIMIT ?", []any{before, limit}}
		}),
		names: s.own.ids(processTable),
		delete: func(ids []int64) clause {
			return s.own.deleteRows(processTable, "t.id IN ("+idList(ids)+") AND t.seen_time < ?", before)
		},
	})
}
