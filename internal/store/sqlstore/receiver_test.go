package sqlstore_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

func receiver(app, address string) row.Receiver {
	return row.Receiver{
		App: app, Address: address, Tags: []string{"a", "é"}, Secret: []byte{1, 0, 0xff, '\''}, TTL: time.Minute,
	}
}

func saveReceiver(t *testing.T, s *sqlstore.Store, w row.Receiver, ttl time.Duration) row.Receiver {
	t.Helper()
	w.TTL = ttl
	saved, err := s.SaveReceiver(t.Context(), w)
	must(t, err)
	return saved
}

func readReceivers(t *testing.T, s *sqlstore.Store) ([]row.Receiver, row.Reading) {
	t.Helper()
	receivers, reading, err := s.Receivers(t.Context())
	if err != nil || reading.Time.IsZero() || reading.Server == "" {
		t.Fatal(receivers, reading, err)
	}
	return receivers, reading
}

func TestReceiversAreSavedByApplicationAndAddress(t *testing.T) {
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		s, _ := open(t, d)
		none, before := readReceivers(t, s)
		if len(none) != 0 {
			t.Fatalf("an empty table has %+v", none)
		}
		long := "http://host/" + strings.Repeat("é", 2036)
		var all []row.Receiver
		for _, w := range []row.Receiver{
			receiver("shop", "http://a/"), receiver("Shop", "http://a/"), receiver("shop", long),
			receiver("é", "http://A/"),
		} {
			saved := saveReceiver(t, s, w, time.Minute)
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
		if got, _ := readReceivers(t, s); !reflect.DeepEqual(got, all) {
			t.Fatalf("read\n%+v\nwant\n%+v", got, all)
		}

		again := receiver("shop", "http://a/")
		again.Tags, again.Secret = nil, nil
		saved := saveReceiver(t, s, again, time.Hour)
		again.ID, again.Tags, again.TTL, again.Secret = all[0].ID, []string{}, time.Hour, all[0].Secret
		again.Created, again.Expires = all[0].Created, saved.Expires
		if !reflect.DeepEqual(saved, again) || saved.Expires < all[0].Expires.Add(time.Minute) {
			t.Errorf("replaced by %+v, want %+v", saved, again)
		}
		if got, _ := readReceivers(t, s); len(got) != 4 || !reflect.DeepEqual(got[0], saved) {
			t.Errorf("read %+v", got)
		}
	})
}

func TestAReceiverLivesByItsHeartbeats(t *testing.T) {
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
			if n, err := s.PurgeReceivers(t.Context()); err != nil || n != want {
				t.Fatalf("purged %d, %v; want %d", n, err, want)
			}
		}
		w := saveReceiver(t, s, receiver("a", "x"), time.Minute)
		other := saveReceiver(t, s, receiver("b", "x"), time.Minute)
		_, reading := readReceivers(t, s)
		expire := func(id int64, ago time.Duration) {
			exec(t, pool.DB, "UPDATE delay_task_worker SET expire_time = ? WHERE id = ?", reading.Time.Add(-ago), id)
		}
		expire(w.ID, -10*time.Second)
		beats(w.ID, true)
		receivers, _ := readReceivers(t, s)
		if len(receivers) != 2 || receivers[0].Expires < w.Expires || receivers[1].Expires != other.Expires {
			t.Fatalf("after a heartbeat there are %+v", receivers)
		}
		beats(other.ID+1, false)

		expire(w.ID, time.Millisecond)
		expire(other.ID, 59*time.Minute)
		if n, err := s.CountReceivers(t.Context()); err != nil || n != 2 {
			t.Errorf("%d receivers are counted, %v, want those that have expired too", n, err)
		}
		if receivers, _ := readReceivers(t, s); len(receivers) != 0 {
			t.Errorf("expired receivers are read: %+v", receivers)
		}
		got, there, err := s.Receiver(t.Context(), w.ID)
		if err != nil || !there || got.App != w.App || got.Expires >= reading.Time {
			t.Errorf("an expired receiver by its id: %+v, %t, %v", got, there, err)
		}
		if got, there, err := s.Receiver(t.Context(), other.ID+1); err != nil || there {
			t.Errorf("a receiver that is not there: %+v, %v", got, err)
		}
		purges(0)
		beats(w.ID, true) // as after an outage of the database
		if receivers, _ := readReceivers(t, s); len(receivers) != 1 || receivers[0].ID != w.ID {
			t.Errorf("a late heartbeat does not bring the receiver back: %+v", receivers)
		}
		expire(other.ID, time.Hour+time.Second)
		purges(1)
		beats(other.ID, false)

		for _, want := range []bool{true, false} {
			if there, err := s.DeleteReceiver(t.Context(), w.ID); err != nil || there != want {
				t.Errorf("deleted: %t, %v", there, err)
			}
		}
		if back := saveReceiver(t, s, receiver("a", "x"), time.Minute); back.ID == w.ID {
			t.Error("the id of a deleted receiver is used again")
		}
	})
}

func TestManyThatSaveOneReceiverAgreeOnIt(t *testing.T) {
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		one, _ := open(t, d)
		for round := range 5 {
			ids := make([]int64, 20)
			fromTwoProcesses(t, d, len(ids), func(s *sqlstore.Store, i int) {
				w, err := s.SaveReceiver(t.Context(), receiver("app", fmt.Sprint("http://", round)))
				if err != nil {
					t.Error(err)
				}
				ids[i] = w.ID
			})
			for _, id := range ids {
				if id != ids[0] || id == 0 {
					t.Fatalf("one receiver has the ids %v", ids)
				}
			}
		}
		if receivers, _ := readReceivers(t, one); len(receivers) != 5 {
			t.Errorf("%d receivers, want 5", len(receivers))
		}
	})
}

func TestAReceiverThatDoesNotFitIsRefused(t *testing.T) {
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s, _ := open(t, d)
		for _, w := range []row.Receiver{
			receiver(strings.Repeat("a", 129), "x"), receiver("a", strings.Repeat("x", 2049)), receiver("a\xff", "x"),
			{App: "a", Address: "x", Secret: make([]byte, 4097)},
		} {
			if got, err := s.SaveReceiver(t.Context(), w); row.ClassOf(err) != row.ClassCaller || got.ID != 0 {
				t.Errorf("%.20s at %.20s: saved as %d, %v", w.App, w.Address, got.ID, err)
			}
		}
	})
}
