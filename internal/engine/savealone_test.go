package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
)

// Another transaction holds keys. Only saves under these keys wait.
func TestSavesThatWaitForALockHoldUpNoOther(t *testing.T) {
	type held struct {
		keys   []string      // of those who wait
		gather time.Duration // before the first save with a free key
		first  time.Duration // that it takes, at most
	}
	inBubbles(t, map[string]held{
		"OneKey": {[]string{"locked"}, 0, 4 * time.Second},
		"ManyKeys": {
			strings.Fields("locked0 locked1 locked2 locked3 locked4 locked5 locked6 locked7 locked8"),
			0,
			time.Minute,
		},
		"KeysOfItsOwnBatch":   {strings.Fields("locked locked0 locked1 locked2 locked3"), 0, time.Minute},
		"ManyCallersOfOneKey": {slices.Repeat([]string{"locked"}, 50), 3 * time.Second, 5 * time.Second},
	}, func(w *world, c held) {
		var unlocked atomic.Bool
		e := w.idle(w.answering(func(r row.Row) error {
			if strings.HasPrefix(r.Key, "locked") && !unlocked.Load() {
				time.Sleep(time.Second)
				return classError(row.ClassLocked, "lock wait timeout")
			}
			return nil
		}), nil)
		var waiting []<-chan answer
		for _, key := range c.keys {
			waiting = append(waiting, w.keyLater(e, key))
			began := time.Now()
			w.save(e, "a", time.Hour)
			if took := time.Since(began); took > 0 {
				w.Errorf("a save without a key took %v beside %d that wait", took, len(waiting))
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(c.gather)
		for i := range 5 {
			w.allStored(max(4*time.Second, c.first), w.keyLater(e, fmt.Sprint("free", i)))
			c.first = 0
			time.Sleep(2 * time.Second)
		}
		unlocked.Store(true)
		stored := 0
		for _, done := range waiting {
			if a := w.answered(done, time.Minute); a.err == nil {
				stored++
			} else if !errors.Is(a.err, delaytask.ErrDuplicate) {
				w.Error(a.err)
			}
		}
		slices.Sort(c.keys)
		if want := len(slices.Compact(c.keys)); stored != want {
			w.Errorf("%d saves that had to wait are stored, want %d", stored, want)
		}
	})
}

// One batch meets an unknown outcome in its first half, and a lock in the second.
func TestHalvesKeepEveryCaller(t *testing.T) {
	inBubble(t, func(w *world) {
		// Eight saves a..h. The whole is refused; a-d of unknown outcome; e-h refused; e-f locked; g-h not applied.
		answers := []error{
			classError(row.ClassCaller, "refused"), classError(row.ClassUnknown, "the reply is lost"),
			classError(row.ClassCaller, "refused"), classError(row.ClassLocked, "lock wait timeout"),
			classError(row.ClassNotApplied, "deadlock"),
		}
		var calls atomic.Int64
		e := w.idle(insertHook{w.store, func(ctx context.Context, _ []row.Row) error {
			n := int(calls.Add(1)) - 2
			if n < 0 {
				lifecycle.Sleep(ctx, 100*time.Millisecond) // the others come together meanwhile
			} else if n < len(answers) {
				return answers[n]
			}
			return nil
		}}, nil)
		var callers []<-chan answer
		for i := range 9 {
			callers = append(callers, w.keyLater(e, string(rune('a'+i))))
		}
		w.allStored(10*time.Second, callers...)
		if n := int(calls.Load()); n <= 1+len(answers) {
			w.Errorf("%d statements were sent: the saves did not travel together", n)
		}
	})
}

// The database answers for some rows with an unknown error, always: saves of others are not stored any more.
func TestRowsOfUnknownOutcomeHoldUpNoOther(t *testing.T) {
	inBubble(t, func(w *world) {
		var healed atomic.Bool
		e := w.idle(w.answering(func(r row.Row) error {
			if r.Tag == "bad" && !healed.Load() {
				return classError(row.ClassUnknown, "Error 1452: a foreign key constraint fails")
			}
			return nil
		}), nil)
		for range 2 { // one for each of the lane's flushers
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			<-w.saveLater(ctx, e, w.task("bad", time.Hour))
			cancel()
		}
		time.Sleep(time.Second) // the callers of the bad ones have left
		w.allStored(time.Minute, w.saveLater(w.Context(), e, w.task("a", time.Hour)))
		healed.Store(true)
		time.Sleep(time.Minute)
	})
}
