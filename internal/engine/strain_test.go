package engine

import (
	"context"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// heavy is a database that writes one row after another, each for as long.
type heavy struct {
	Store
	each time.Duration
	turn chan struct{}
}

func (s heavy) write(rows int) {
	s.turn <- struct{}{}
	time.Sleep(time.Duration(rows) * s.each)
	<-s.turn
}

func (s heavy) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	s.write(len(c.Rows))
	won, err := s.Store.Claim(ctx, c)
	s.write(len(c.Rows))
	return won, err
}

func (s heavy) Update(ctx context.Context, tx Tx, changes []row.Change) (int, error) {
	s.write(len(changes))
	return s.Store.Update(ctx, tx, changes)
}

// Five processes that claim as much as they have room for are back when their leases are over: each claims again, the database is
// slower yet, and nothing is ever done. What the database writes in 15 seconds must be done in 60: claims are in vain until they are
// smaller, and what has lost its lease three times goes one by one.
func TestABacklogIsWorkedOffAlthoughLargeClaimsOutlastTheLeases(t *testing.T) {
	inBubble(t, func(w *world) {
		const tasks = 5000
		due := row.At(time.Now().Add(-time.Minute))
		for i := range int64(tasks) {
			w.store.Plant(row.Row{ID: 1000 + i, Tag: "a", Body: []byte("{}"), Due: due + row.Time(i), Expected: due, TTR: time.Second, MaxAttempts: 20})
		}
		db := heavy{w.store, time.Millisecond, make(chan struct{}, 1)}
		for range 5 {
			w.engine(db, map[string]processor.Func{"a": nothing})
		}
		time.Sleep(time.Minute)
		done, _, _ := w.store.List(w.Context(), row.Filter{Tag: "a", Status: new(row.Completed), Limit: tasks}, false)
		if len(done) < tasks {
			w.Errorf("%d of %d tasks are done", len(done), tasks)
		}
		for i := range done {
			if n := len(w.runs.of(done[i].ID)); n != 1 {
				w.Fatalf("task %d ran %d times", done[i].ID, n)
			}
		}
	})
}
