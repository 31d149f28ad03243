package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// refuses answers claims that carry one of the rows as a database does that cannot count its lease.
func (w *world) refuses(class row.Class, bad func(id int64) bool, claims *atomic.Int64) claimHook {
	return claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
		claims.Add(1)
		if slices.ContainsFunc(c.Rows, func(r row.Ref) bool { return bad(r.ID) }) {
			return row.Claimed{}, classError(class, "Datetime function: datetime field overflow")
		}
		return w.store.Claim(ctx, c)
	}}
}

// As a row that was put off by SQL into the year 9999, its version as it was, when its timer was armed already.
func TestRowWhoseClaimIsRefusedHoldsUpNoNeighbour(t *testing.T) {
	inBubblesOf(t, []row.Class{row.ClassCaller, row.ClassDuplicate}, func(w *world, class row.Class) {
		var bad, claims atomic.Int64
		e := w.engine(w.refuses(class, func(id int64) bool { return id == bad.Load() }, &claims), serving{"a": nothing})
		time.Sleep(time.Second)
		ids := w.saveMany(e, "a", 60, delaytask.WithTime(time.Now().Add(3*time.Second)))
		parked := ids[17]
		bad.Store(parked)
		r := w.row(parked)
		r.Due = r.Due.Add(100 * 365 * 24 * time.Hour)
		w.store.Plant(r)
		time.Sleep(20 * time.Second)
		w.allCompleted(slices.Delete(ids, 17, 18), 5*time.Millisecond)
		if n := claims.Load(); n > 20 {
			w.Errorf("%d claims for 60 rows with a refused one", n)
		}
		if r := w.row(parked); r.Status != row.Pending || r.Version != 0 || e.runqueue.Owns(parked) {
			w.Errorf("the refused row, held: %v: %+v", e.runqueue.Owns(parked), r)
		}
	})
}

// A trigger may refuse all rows of a tag, and they may be the oldest.
func TestManyRefusedRowsTogetherHoldUpNoOthers(t *testing.T) {
	inBubble(t, func(w *world) {
		var claims, good atomic.Int64
		e := w.engine(
			w.refuses(row.ClassCaller, func(id int64) bool { return id < good.Load() }, &claims),
			serving{"a": nothing},
			func(c *Config) { c.Concurrency = 500 },
		)
		time.Sleep(time.Second)
		ids := w.saveMany(e, "a", 440, delaytask.WithTime(time.Now().Add(3*time.Second)))
		good.Store(ids[40])
		time.Sleep(20 * time.Second)
		w.allCompleted(ids[40:], 5*time.Millisecond)
	})
}

// A trigger that refuses every start must not make a statement of every row, again and again.
func TestRowsThatAreRefusedForAWhileStartWhenTheyAreNot(t *testing.T) {
	type refused struct {
		tasks  int
		lasts  time.Duration
		claims int64         // at most
		late   time.Duration // when they are refused no more
	}
	inBubbles(t, map[string]refused{
		"One":  {1, 30 * time.Second, 30, 6 * time.Second},
		"Many": {2000, time.Minute, 60 * 100, 10 * time.Second},
	}, func(w *world, c refused) {
		var off atomic.Bool
		var claims atomic.Int64
		e := w.engine(
			w.refuses(row.ClassCaller, func(int64) bool { return !off.Load() }, &claims),
			serving{"a": nothing},
		)
		time.Sleep(time.Second)
		ids := w.many(e, c.tasks, "a", time.Second)
		time.Sleep(time.Second + c.lasts)
		if n := claims.Load(); n > c.claims {
			w.Errorf("%d claims in %v, all refused", n, c.lasts)
		}
		off.Store(true)
		time.Sleep(c.late)
		w.allCompleted(ids, c.lasts+c.late)
	})
}

// The search takes longer than claims may that hold up others: those that run keep their slots meanwhile, and no slot
// is lost.
func TestSlowSearchForARefusedRowKeepsTheSlotsRight(t *testing.T) {
	inBubble(t, func(w *world) {
		var bad, claims, running, most atomic.Int64
		store := slow(
			w.refuses(row.ClassCaller, func(id int64) bool { return id == bad.Load() }, &claims),
			"Claim",
			300*time.Millisecond,
		)
		e := w.engine(
			store,
			serving{"a": counting(&running, &most, 3*time.Second)},
			func(c *Config) { c.Concurrency = 16 },
		)
		time.Sleep(time.Second)
		ids := w.saveMany(e, "a", 60, delaytask.WithTime(time.Now().Add(3*time.Second)))
		bad.Store(ids[3])
		time.Sleep(90 * time.Second)
		w.allCompleted(slices.Delete(ids, 3, 4), time.Minute)
		if most.Load() > 16 {
			w.Errorf("%d ran at once, want at most 16", most.Load())
		}
		bad.Store(0)
		time.Sleep(10 * time.Second)
		if n := e.runqueue.Counts(); n.Claimed != 0 || n.Running != 0 || n.Owned != 0 {
			w.Errorf("in the end: %+v", n)
		}
	})
}
