package integration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/dbtest"
)

// chunk is how many tasks are stored together at most.
const chunk = 500

func keyedItems(n int) []delaytask.Item {
	items := make([]delaytask.Item, n)
	for i := range items {
		items[i] = delaytask.Item{Tag: "t", Body: fmt.Sprint(i), Delay: time.Hour,
			Options: []delaytask.Option{delaytask.WithKey(fmt.Sprint("k", i))}}
	}
	return items
}

func TestTwoClientsWithTheSameBatchGetTheSameTasks(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		clients := []*delaytask.Scheduler{open(t, d), open(t, d)}
		const n = 3*chunk + 10
		answers := make([][]delaytask.SaveResult, 4)
		var group sync.WaitGroup
		for i := range answers {
			group.Go(func() {
				var err error
				if answers[i], err = clients[i%2].SaveDelayTasks(t.Context(), keyedItems(n)); err != nil {
					t.Errorf("client %d: %v", i, err)
				}
			})
		}
		group.Wait()
		for i := range n {
			fresh := 0
			for _, results := range answers {
				if len(results) != n || results[i].ID != answers[0][i].ID {
					t.Fatalf("task %d: the answers differ", i)
				}
				if results[i].Err == nil {
					fresh++
				}
			}
			if fresh != 1 {
				t.Errorf("task %d was new to %d clients", i, fresh)
			}
		}
		if stored := count(t, pool(t, d), ""); stored != n {
			t.Errorf("%d rows, want %d", stored, n)
		}
	})
}

func TestARefusedIDLeavesNothingOfItsChunk(t *testing.T) {
	each(t, func(t *testing.T, d dbtest.Database) {
		s := open(t, d)
		taken := save(t, s, "other", time.Hour)
		items := keyedItems(2*chunk + 1)
		items[chunk+7].Options = []delaytask.Option{delaytask.WithID(taken)}
		results, err := s.SaveDelayTasks(t.Context(), items)
		if !errors.Is(err, delaytask.ErrConflict) {
			t.Fatalf("got %v", err)
		}
		for i, r := range results {
			refused := i/chunk == 1
			if named, _ := errors.AsType[*delaytask.ChunkError](r.Err); (r.Err != nil) != refused || r.Chunk != i/chunk ||
				refused && i != chunk+7 && (named == nil || named.Index != chunk+7) {
				t.Fatalf("task %d: %+v", i, r)
			}
		}
		if stored := count(t, pool(t, d), ""); stored != chunk+2 {
			t.Errorf("%d rows, want those of two chunks and the one from before", stored)
		}
	})
}

// TestKilledConnectionsLeaveNoHalfOfAChunk cuts all connections again and again while batches are saved.
func TestKilledConnectionsLeaveNoHalfOfAChunk(t *testing.T) {
	servers(t, func(t *testing.T, d dbtest.Database) {
		s, db := open(t, d), pool(t, d)
		ctx, cancel := context.WithCancel(t.Context())
		var killer sync.WaitGroup
		var killed atomic.Int64
		killer.Go(func() {
			for ctx.Err() == nil && killed.Load() < 30 { // more often, and no statement would ever get through
				killed.Add(killSavers(ctx, db))
			}
		})
		want := 0
		for rounds := 0; rounds < 8 || killed.Load() == 0 && rounds < 500; rounds++ {
			items := make([]delaytask.Item, 2*chunk)
			for i := range items {
				items[i] = delaytask.Item{Tag: "t", Delay: time.Hour}
			}
			results, err := s.SaveDelayTasks(t.Context(), items)
			if results == nil {
				t.Fatal(err)
			}
			parts := [2]int{}
			for _, r := range results {
				if r.Err == nil {
					parts[r.Chunk]++
				}
			}
			for i, n := range parts {
				if n != 0 && n != chunk {
					t.Errorf("chunk %d: %d of %d tasks are said to be stored", i, n, chunk)
				}
				want += n
			}
		}
		cancel()
		killer.Wait()
		if stored := count(t, db, ""); stored != want {
			t.Errorf("%d rows, %d were said to be stored", stored, want)
		}
		t.Logf("%d connections were killed", killed.Load())
		if killed.Load() == 0 {
			t.Error("no connection was killed amid a save")
		}
	})
}

// killSavers ends the connections that are inserting.
func killSavers(ctx context.Context, db *sql.DB) (killed int64) {
	var ids []int64
	const inserting = "SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND info LIKE 'INSERT INTO delay_task_message%'"
	if err := sqlx.NewDb(db, "mysql").SelectContext(ctx, &ids, inserting); err != nil {
		return 0
	}
	for _, id := range ids {
		if _, err := db.ExecContext(ctx, fmt.Sprint("KILL ", id)); err == nil {
			killed++
		}
	}
	return killed
}

func count(t *testing.T, db *sql.DB, where string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM delay_task_message "+where).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
