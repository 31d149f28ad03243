package sqlstore_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func worker(app, address string) row.Worker {
	return row.Worker{App: app, Address: address, Tags: []string{"a", "é"}, Secret: []byte{1, 0, 0xff, '\''}, TTL: time.Minute}
}

func saveWorker(t *testing.T, s *sqlstore.Store, w row.Worker, ttl time.Duration) row.Worker {
	t.Helper()
	w.TTL = ttl
	saved, err := s.SaveWorker(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

func readWorkers(t *testing.T, s *sqlstore.Store) ([]row.Worker, row.Reading) {
	t.Helper()
	workers, reading, err := s.Workers(t.Context())
	if err != nil || reading.Time.IsZero() || reading.Server == "" {
		t.Fatal(workers, reading, err)
	}
	return workers, reading
}

func TestWorkersAreSavedByApplicationAndAddress(t *testing.T) {
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		s, _ := open(t, d)
		none, before := readWorkers(t, s)
		if len(none) != 0 {
			t.Fatalf("an empty table has %+v", none)
		}
		long := "http://host/" + strings.Repeat("é", 2036)
		var all []row.Worker
		for _, w := range []row.Worker{
			worker("shop", "http://a/"), worker("Shop", "http://a/"), worker("shop", long), worker("é", "http://A/"),
		} {
			saved := saveWorker(t, s, w, time.Minute)
			life := saved.Expires.Sub(saved.Created) // SQLite's clock goes on within a statement
			if saved.Created < before.Time || life < time.Minute || life > time.Minute+20*time.Second || saved.ID < 1 {
				t.Errorf("%d was saved at %s for %s, after %s", saved.ID, saved.Created, life, before.Time)
			}
			w.ID, w.Created, w.Expires = saved.ID, saved.Created, saved.Expires
			if !reflect.DeepEqual(saved, w) {
				t.Errorf("saved as %+v, want %+v", saved, w)
			}
			all = append(all, saved)
		}
		if got, _ := readWorkers(t, s); !reflect.DeepEqual(got, all) {
			t.Fatalf("read\n%+v\nwant\n%+v", got, all)
		}

		again := worker("shop", "http://a/")
		again.Tags, again.Secret = nil, nil
		saved := saveWorker(t, s, again, time.Hour)
		again.ID, again.Tags, again.TTL, again.Secret = all[0].ID, []string{}, time.Hour, all[0].Secret
		again.Created, again.Expires = all[0].Created, saved.Expires
		if !reflect.DeepEqual(saved, again) || saved.Expires < all[0].Expires.Add(time.Minute) {
			t.Errorf("replaced by %+v, want %+v", saved, again)
		}
		if got, _ := readWorkers(t, s); len(got) != 4 || !reflect.DeepEqual(got[0], saved) {
			t.Errorf("read %+v", got)
		}
	})
}

func TestAWorkerLivesByItsHeartbeats(t *testing.T) {
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		beats := func(id int64, want bool) {
			t.Helper()
			if there, err := s.Heartbeat(t.Context(), id); err != nil || there != want {
				t.Fatalf("a heartbeat of %d: %t, %v", id, there, err)
			}
		}
		purges := func(want int) {
			t.Helper()
			if n, err := s.PurgeWorkers(t.Context()); err != nil || n != want {
				t.Fatalf("purged %d, %v; want %d", n, err, want)
			}
		}
		w, other := saveWorker(t, s, worker("a", "x"), time.Minute), saveWorker(t, s, worker("b", "x"), time.Minute)
		_, reading := readWorkers(t, s)
		expire := func(id int64, ago time.Duration) {
			exec(t, pool.DB, "UPDATE delay_task_worker SET expire_time = ? WHERE id = ?", reading.Time.Add(-ago), id)
		}
		expire(w.ID, -10*time.Second)
		beats(w.ID, true)
		workers, _ := readWorkers(t, s)
		if len(workers) != 2 || workers[0].Expires < w.Expires || workers[1].Expires != other.Expires {
			t.Fatalf("after a heartbeat there are %+v", workers)
		}
		beats(other.ID+1, false)

		expire(w.ID, time.Millisecond)
		expire(other.ID, 59*time.Minute)
		if n, err := s.CountWorkers(t.Context()); err != nil || n != 2 {
			t.Errorf("%d workers are counted, %v, want those that have expired too", n, err)
		}
		if workers, _ := readWorkers(t, s); len(workers) != 0 {
			t.Errorf("expired workers are read: %+v", workers)
		}
		if got, there, err := s.Worker(t.Context(), w.ID); err != nil || !there || got.App != w.App || got.Expires >= reading.Time {
			t.Errorf("an expired worker by its id: %+v, %t, %v", got, there, err)
		}
		if got, there, err := s.Worker(t.Context(), other.ID+1); err != nil || there {
			t.Errorf("a worker that is not there: %+v, %v", got, err)
		}
		purges(0)
		beats(w.ID, true) // as after an outage of the database
		if workers, _ := readWorkers(t, s); len(workers) != 1 || workers[0].ID != w.ID {
			t.Errorf("a late heartbeat does not bring the worker back: %+v", workers)
		}
		expire(other.ID, time.Hour+time.Second)
		purges(1)
		beats(other.ID, false)

		for _, want := range []bool{true, false} {
			if there, err := s.DeleteWorker(t.Context(), w.ID); err != nil || there != want {
				t.Errorf("deleted: %t, %v", there, err)
			}
		}
		if back := saveWorker(t, s, worker("a", "x"), time.Minute); back.ID == w.ID {
			t.Error("the id of a deleted worker is used again")
		}
	})
}

func TestManyThatSaveOneWorkerAgreeOnIt(t *testing.T) {
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		one, _ := open(t, d)
		for round := range 5 {
			ids := make([]int64, 20)
			fromTwoProcesses(t, d, len(ids), func(s *sqlstore.Store, i int) {
				w, err := s.SaveWorker(t.Context(), worker("app", fmt.Sprint("http://", round)))
				if err != nil {
					t.Error(err)
				}
				ids[i] = w.ID
			})
			for _, id := range ids {
				if id != ids[0] || id == 0 {
					t.Fatalf("one worker has the ids %v", ids)
				}
			}
		}
		if workers, _ := readWorkers(t, one); len(workers) != 5 {
			t.Errorf("%d workers, want 5", len(workers))
		}
	})
}

func TestAWorkerThatDoesNotFitIsRefused(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, _ := open(t, d)
		for _, w := range []row.Worker{
			worker(strings.Repeat("a", 129), "x"), worker("a", strings.Repeat("x", 2049)), worker("a\xff", "x"),
			{App: "a", Address: "x", Secret: make([]byte, 4097)},
		} {
			if got, err := s.SaveWorker(t.Context(), w); row.ClassOf(err) != row.ClassCaller || got.ID != 0 {
				t.Errorf("%.20s at %.20s: saved as %d, %v", w.App, w.Address, got.ID, err)
			}
		}
	})
}
