package engine

import (
	"fmt"
	"testing"
	"time"

	"github.com/delaytask/delaytask/processor"
)

// Nobody could send a heartbeat in an outage. A row that is in no share after it is left to others, who are not there.
func TestRowsOfALoneNodeAreItsOwnAfterAnOutage(t *testing.T) {
	for i := range 8 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			inBubble(t, func(w *world) {
				store := &remote{Store: w.store}
				e := w.engine(store, map[string]processor.Func{"a": nothing})
				time.Sleep(5 * time.Second)
				store.away.Store(true)
				time.Sleep(10*time.Second + time.Duration(i)*317*time.Millisecond)
				store.away.Store(false)
				for back := time.Now(); time.Since(back) < 5*time.Second; time.Sleep(10 * time.Millisecond) {
					if !e.arm.shared(1, "a") {
						w.Fatalf("%v after the outage a row is not the node's own", time.Since(back))
					}
				}
			})
		})
	}
}
