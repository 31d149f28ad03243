package reqbody

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestARoomIsSharedByCallersInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(10, 6)
		entered := make(chan string, 10)
		wait := time.Minute
		enter := func(caller string, bytes int64) {
			go func(wait time.Duration) {
				if _, err := r.Enter(t.Context(), caller, bytes, wait, nil); err == nil {
					entered <- caller
				}
			}(wait)
			wait -= time.Second // or the last ones would get the room of those that have waited in vain
			synctest.Wait()
		}
		first, err := r.Enter(t.Context(), "weak", 100, 0, nil) // its share
		if err != nil || r.Free() != 4 {
			t.Fatalf("%v, %d bytes are free", err, r.Free())
		}
		enter("weak", 6)
		enter("weak", 6)
		enter("other", 5)
		enter("other", 4)
		if len(entered) != 0 {
			t.Fatal("a later request of a caller has overtaken its first one")
		}
		first.Leave()
		synctest.Wait()
		if len(entered) != 1 || <-entered != "weak" || r.Free() != 4 {
			t.Errorf("%d bytes are free", r.Free())
		}
		enter("third", 4) // none of the first ones in line fits
		if _, err := r.Enter(t.Context(), "fourth", 4, time.Second, nil); !errors.Is(err, NoRoom) {
			t.Errorf("without room: %v", err)
		}
		time.Sleep(time.Minute)
		if r.Free() != 4 || len(r.waiting) != 0 {
			t.Errorf("%d bytes are free, %d wait", r.Free(), len(r.waiting))
		}
	})
}

func TestWhoNeedsRoomCutsOffWhoHoldsMostAndWaitsForItsClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRoom(10, 8)
		cut := map[string]int{}
		enter := func(caller string, bytes int64, waits bool) {
			t.Helper()
			var place *Place
			place, err := r.Enter(t.Context(), caller, bytes, time.Minute, nil)
			if err != nil {
				t.Fatal(err)
			}
			if waits {
				place.Waits(func() {
					cut[caller]++
					go place.Leave()
				})
			}
		}
		enter("busy", 2, false)
		enter("slow", 2, true)
		enter("weak", 3, true)
		enter("weak", 3, true)
		began := time.Now()
		enter("other", 3, true)
		if took := time.Since(began); took < cutAfter || took > 2*cutAfter || cut["weak"] != 1 || len(cut) != 1 {
			t.Errorf("after %v cut were %v", took, cut)
		}
		if grown := r.Open("late").Grow(3); grown || cut["weak"] != 2 {
			t.Errorf("grown: %t, cut were %v", grown, cut)
		}
		synctest.Wait()
		if !r.Open("late").Grow(3) {
			t.Error("there is still no room")
		}
	})
}
