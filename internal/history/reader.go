package history

import (
	"context"

	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/journal"
	"github.com/delaytask/delaytask/internal/row"
)

// Get implements [engine.Saver].
func (r *Recorder) Get(ctx context.Context, tx engine.Tx, ids []int64) ([]row.Row, []row.Broken, error) {
	if tx != nil {
		return r.Store.Get(ctx, tx, ids)
	}
	c := r.look(ids)
	rows, broken, err := r.Store.Get(ctx, nil, ids)
	seen := make([]row.State, len(rows))
	for i := range rows {
		w := &rows[i]
		seen[i] = row.State{ID: w.ID, Version: w.Version, Status: w.Status, Executor: w.Executor}
	}
	c.saw(seen, broken, err)
	return rows, broken, err
}

// States implements [engine.Finder].
func (r *Recorder) States(ctx context.Context, ids []int64) ([]row.State, error) {
	c := r.look(ids)
	states, err := r.Store.States(ctx, ids)
	c.saw(states, nil, err)
	return states, err
}

// look begins a read.
func (r *Recorder) look(ids []int64) *call {
	return r.begin(asking(r, ids, func(id int64) journal.Event { return journal.Event{Kind: journal.StoreRead, ID: id} }))
}

// saw writes down what a read has seen. A row that cannot be decoded shows nothing that is worth a word.
func (c *call) saw(states []row.State, broken []row.Broken, err error) {
	if err != nil {
		c.all(journal.Refused)
		return
	}
	seen := make(map[int64]journal.Event, len(states)+len(broken))
	for _, s := range states {
		seen[s.ID] = journal.Event{Version: s.Version, Status: s.Status.String(), Executor: s.Executor}
	}
	for _, b := range broken {
		seen[b.ID] = journal.Event{Error: journal.Refused}
	}
	c.told(func(asked *journal.Event) journal.Event { return seen[asked.ID] })
}
