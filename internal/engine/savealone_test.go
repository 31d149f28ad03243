package engine

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// lockedKeys is a store in which somebody's transaction holds all keys that begin with "locked", until it is unlocked.
func (w *world) lockedKeys(unlocked *atomic.Bool) Store {
	return insertHook{w.store, func(_ context.Context, rows []row.Row) error {
		for _, r := range rows {
			if strings.HasPrefix(r.Key, "locked") && !unlocked.Load() {
				time.Sleep(time.Second)
				return classError(row.ClassLocked, "lock wait timeout")
			}
		}
		return nil
	}}
}

func TestSavesThatWaitForALockHoldUpNoPlainSave(t *testing.T) {
	inBubble(t, func(w *world) {
		var unlocked atomic.Bool
		e := w.idle(w.lockedKeys(&unlocked), nil)
		for i := range 10 {
			w.saveLater(w.Context(), e, w.task("a", time.Hour, processor.WithKey(fmt.Sprint("locked", i))))
			began := time.Now()
			w.save(e, "a", time.Hour)
			if took := time.Since(began); took > 10*time.Millisecond {
				w.Errorf("a plain save took %v beside %d that wait", took, i+1)
			}
		}
		unlocked.Store(true)
	})
}

// Four keys of one batch are held by somebody's transaction: the neighbours of that batch wait as long as it.
func TestLockedKeysHoldUpNoNeighbourInTheirBatch(t *testing.T) {
	inBubble(t, func(w *world) {
		var unlocked atomic.Bool
		e := w.idle(w.lockedKeys(&unlocked), nil)
		w.saveLater(w.Context(), e, w.task("a", time.Hour, processor.WithKey("locked"))) // is in flight while the others gather
		time.Sleep(10 * time.Millisecond)
		for i := range 4 {
			w.saveLater(w.Context(), e, w.task("a", time.Hour, processor.WithKey(fmt.Sprint("locked", i))))
			time.Sleep(time.Millisecond)
		}
		free := w.saveLater(w.Context(), e, w.task("b", time.Hour, processor.WithKey("free")))
		select {
		case a := <-free:
			if a.err != nil {
				w.Error(a.err)
			}
		case <-time.After(time.Minute):
			w.Error("a save with a free key has waited for a minute")
		}
		unlocked.Store(true)
		time.Sleep(10 * time.Second)
	})
}

// Many callers save under one key that somebody's transaction holds: everybody else's keyed saves wait a second for each of them.
func TestCallersOfOneLockedKeyHoldUpNoOtherKey(t *testing.T) {
	inBubble(t, func(w *world) {
		var unlocked atomic.Bool
		e := w.idle(w.lockedKeys(&unlocked), nil)
		for range 50 {
			w.saveLater(w.Context(), e, w.task("a", time.Hour, processor.WithKey("locked")))
		}
		time.Sleep(3 * time.Second)
		began := time.Now()
		free := w.saveLater(w.Context(), e, w.task("b", time.Hour, processor.WithKey("free")))
		a := <-free
		if a.err != nil {
			w.Error(a.err)
		}
		if took := time.Since(began); took > 5*time.Second {
			w.Errorf("a save with a free key waited %v", took)
		}
		unlocked.Store(true)
		time.Sleep(time.Minute)
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
			callers = append(callers, w.saveLater(w.Context(), e, w.task("a", time.Hour, processor.WithKey(string(rune('a'+i))))))
		}
		time.Sleep(10 * time.Second)
		for i, caller := range callers {
			select {
			case a := <-caller:
				if a.err != nil {
					w.Errorf("%d: %v", i, a.err)
				}
			default:
				w.Errorf("caller %d has no answer", i)
			}
		}
		if n := int(calls.Load()); n <= 1+len(answers) {
			w.Errorf("%d statements were sent: the saves did not travel together", n)
		}
	})
}

// The database answers for some rows with an error that nobody knows, always: saves of others are not stored any more.
func TestRowsOfUnknownOutcomeHoldUpNoOther(t *testing.T) {
	inBubble(t, func(w *world) {
		var healed atomic.Bool
		e := w.idle(insertHook{w.store, func(_ context.Context, rows []row.Row) error {
			for _, r := range rows {
				if r.Tag == "bad" && !healed.Load() {
					return classError(row.ClassUnknown, "Error 1452: a foreign key constraint fails")
				}
			}
			return nil
		}}, nil)
		for range 2 { // one for each of the lane's flushers
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			<-w.saveLater(ctx, e, w.task("bad", time.Hour))
			cancel()
		}
		time.Sleep(time.Second)
		select { // the callers of the bad ones have left
		case a := <-w.saveLater(w.Context(), e, w.task("a", time.Hour)):
			if a.err != nil {
				w.Error(a.err)
			}
		case <-time.After(time.Minute):
			w.Error("a save has waited for a minute")
		}
		healed.Store(true)
		time.Sleep(time.Minute)
	})
}
