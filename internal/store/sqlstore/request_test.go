package sqlstore_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// request has bytes that no character set could carry.
func request(n byte, task int64) row.Request {
	return row.Request{Hash: [32]byte{0, 0xff, '\'', 31: n}, Content: [32]byte{0x80, '\\', 31: n}, TaskID: task}
}

func TestARequestIsReservedOnce(t *testing.T) {
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		s, _ := open(t, d)
		f := func(r row.Request, want row.Request, wantMine bool) {
			t.Helper()
			got, mine, err := s.ReserveRequest(t.Context(), r)
			if err != nil || got != want || mine != wantMine {
				t.Fatalf("got %+v, %t, %v; want %+v, %t", got, mine, err, want, wantMine)
			}
		}
		first := request(1, 7)
		f(first, first, true)
		f(first, first, true) // a reply was lost
		f(request(1, 8), first, false)
		other := request(1, 7)
		other.Content[0]++
		f(other, first, false)
		f(request(2, 8), request(2, 8), true)

		saved := first
		saved.Saved = true
		must(t, s.SaveRequest(t.Context(), saved))
		f(first, saved, false)
		saved.TaskID, saved.Duplicate = 5, true
		must(t, s.SaveRequest(t.Context(), saved))
		f(request(1, 9), saved, false)
		saved.Rescheduled = true
		must(t, s.SaveRequest(t.Context(), saved))
		f(request(1, 9), saved, false)
		f(request(2, 8), request(2, 8), true) // the other one is as it was
		if err := s.SaveRequest(t.Context(), request(3, 5)); err != nil {
			t.Errorf("a request that is forgotten: %v", err)
		}
	})
}

func TestOfManyThatReserveOneRequestOneWins(t *testing.T) {
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		for round := range byte(5) {
			var mu sync.Mutex
			winners, tasks := 0, map[int64]int{}
			fromTwoProcesses(t, d, 50, func(s *sqlstore.Store, i int) {
				got, mine, err := s.ReserveRequest(t.Context(), request(round, int64(i)+1))
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				tasks[got.TaskID]++
				if mine {
					winners++
				}
			})
			if winners != 1 || len(tasks) != 1 {
				t.Fatalf("%d callers won, and they read the tasks %v", winners, tasks)
			}
		}
	})
}

// fromTwoProcesses calls do n times at once, each time on another one of two stores.
func fromTwoProcesses(t *testing.T, d dbtest.Database, n int, do func(s *sqlstore.Store, i int)) {
	t.Helper()
	one, _ := open(t, d)
	two, _ := open(t, d)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do([]*sqlstore.Store{one, two}[i%2], i) })
	}
	wg.Wait()
}

func TestRequestsAreForgottenAfterADay(t *testing.T) {
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		now, err := s.Now(t.Context())
		must(t, err)
		const day, update = 24 * time.Hour, "UPDATE delay_task_request SET create_time = ? WHERE task_id = ?"
		for i, age := range []time.Duration{0, day - time.Minute, day + time.Second, 25 * time.Hour, 26 * time.Hour} {
			r := request(byte(i), int64(i)+1)
			must(t, two(s.ReserveRequest(t.Context(), r)))
			exec(t, pool.DB, update, now.Time.Add(-age), r.TaskID)
		}
		f := func(limit, want int, wantLeft ...int64) {
			t.Helper()
			n, err := s.PurgeRequests(t.Context(), limit)
			if err != nil || n != want {
				t.Fatalf("purged %d, %v; want %d", n, err, want)
			}
			var left []int64
			must(t, pool.Select(&left, "SELECT task_id FROM delay_task_request ORDER BY task_id"))
			if !slices.Equal(left, wantLeft) {
				t.Fatalf("left are %v, want %v", left, wantLeft)
			}
		}
		f(0, 0, 1, 2, 3, 4, 5)
		f(-1, 0, 1, 2, 3, 4, 5)
		f(2, 2, 1, 2, 3)
		f(100, 1, 1, 2)
		f(100, 0, 1, 2)
		fresh := request(4, 50)
		if got, mine, err := s.ReserveRequest(t.Context(), fresh); err != nil || !mine || got != fresh {
			t.Errorf("a forgotten request is reserved as %+v, %t, %v", got, mine, err)
		}
	})
}
