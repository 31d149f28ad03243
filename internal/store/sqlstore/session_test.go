package sqlstore_test

import (
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
)

// session has bytes that no character set could carry.
func session(n byte, token string) row.Session {
	return row.Session{Hash: [32]byte{0, 0xff, '\'', 31: n}, Token: token, TokenHash: [32]byte{0x80, '\\', 31: n}}
}

func TestASessionIsThereUntilItIsDeletedOrPurged(t *testing.T) {
	lender.Each(t, func(t *testing.T, d dbtest.Database) {
		s, pool := open(t, d)
		exec(t, pool.DB, "DELETE FROM delay_task_session")
		f := func(want row.Session, wantFound bool, wantLeft time.Duration) {
			t.Helper()
			all, now, err := s.Sessions(t.Context(), [][32]byte{{1}, want.Hash, {2}})
			must(t, err)
			if len(all) == 0 && !wantFound {
				return
			}
			if len(all) != 1 || !wantFound {
				t.Fatalf("got %+v; want %+v, %t", all, want, wantFound)
			}
			got := all[0]
			left := got.Expires.Sub(now.Time)
			got.Expires = 0
			if got != want || left > wantLeft || left < wantLeft-time.Minute {
				t.Fatalf("got %+v, good for %v; want %+v", got, left, want)
			}
		}
		one, two := session(1, "shop/ops"), session(2, "shop/ops")
		f(one, false, 0)
		must(t, s.CreateSession(t.Context(), one, 12*time.Hour))
		must(t, s.CreateSession(t.Context(), one, 12*time.Hour)) // a reply was lost
		must(t, s.CreateSession(t.Context(), two, time.Hour))
		f(one, true, 12*time.Hour)
		f(two, true, time.Hour)
		both, _, err := s.Sessions(t.Context(), [][32]byte{one.Hash, two.Hash})
		if must(t, err); len(both) != 2 || both[0].Hash == both[1].Hash {
			t.Fatalf("got %+v, want both", both)
		}
		must(t, s.DeleteSession(t.Context(), one.Hash))
		must(t, s.DeleteSession(t.Context(), one.Hash))
		f(one, false, 0)

		purges := func(limit, want int) {
			t.Helper()
			if n, err := s.PurgeSessions(t.Context(), limit); err != nil || n != want {
				t.Fatalf("purged %d, %v; want %d", n, err, want)
			}
		}
		must(t, s.CreateSession(t.Context(), one, time.Hour))
		purges(100, 0)
		exec(t, pool.DB, "UPDATE delay_task_session SET expire_time = create_time")
		purges(-1, 0)
		purges(1, 1)
		purges(100, 1)
		f(one, false, 0)
	})
}
