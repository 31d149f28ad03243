package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
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
	for _, class := range []row.Class{row.ClassCaller, row.ClassDuplicate} {
		t.Run(class.String(), func(t *testing.T) {
			inBubble(t, func(w *world) {
				var bad, claims atomic.Int64
				e := w.engine(w.refuses(class, func(id int64) bool { return id == bad.Load() }, &claims),
					map[string]processor.Func{"a": nothing})
				time.Sleep(time.Second)
				at := time.Now().Add(3 * time.Second)
				ids := w.saveMany(e, "a", 60, processor.WithTime(at))
				parked := ids[17]
				bad.Store(parked)
				r := w.row(parked)
				r.Due = r.Due.Add(100 * 365 * 24 * time.Hour)
				w.store.Plant(r)
				time.Sleep(20 * time.Second)
				for _, id := range slices.DeleteFunc(ids, func(id int64) bool { return id == parked }) {
					w.completed(id, 5*time.Millisecond)
				}
				if n := claims.Load(); n > 20 {
					w.Errorf("%d claims for 60 rows, one of which is refused", n)
				}
				if r := w.row(parked); r.Status != row.Pending || r.Version != 0 || e.hands.holds(parked) {
					w.Errorf("the refused row, held: %v: %+v", e.hands.holds(parked), r)
				}
			})
		})
	}
}

// As those of one tag that a trigger refuses, when they are the oldest.
func TestManyRefusedRowsTogetherHoldUpNoOthers(t *testing.T) {
	inBubble(t, func(w *world) {
		var claims, good atomic.Int64
		e := w.engine(w.refuses(row.ClassCaller, func(id int64) bool { return id < good.Load() }, &claims),
			map[string]processor.Func{"a": nothing}, func(c *Config) { c.Workers = 500 })
		time.Sleep(time.Second)
		at := time.Now().Add(3 * time.Second)
		ids := w.saveMany(e, "a", 440, processor.WithTime(at))
		good.Store(ids[40])
		time.Sleep(20 * time.Second)
		for _, id := range ids[40:] {
			w.completed(id, 5*time.Millisecond)
		}
	})
}

func TestRowThatIsRefusedForAWhileStartsWhenItIsNot(t *testing.T) {
	inBubble(t, func(w *world) {
		var bad, claims atomic.Int64
		e := w.engine(w.refuses(row.ClassCaller, func(id int64) bool { return id == bad.Load() }, &claims),
			map[string]processor.Func{"a": nothing})
		time.Sleep(time.Second)
		id := w.save(e, "a", 3*time.Second)
		bad.Store(id)
		time.Sleep(33 * time.Second)
		if n := claims.Load(); n > 30 {
			w.Errorf("a row that is refused was claimed %d times in 30 s", n)
		}
		bad.Store(0)
		time.Sleep(6 * time.Second)
		w.completed(id, 36*time.Second)
	})
}

// The search takes longer than claims may that hold up others: those that run keep their slots meanwhile, and no slot is lost.
func TestSlowSearchForARefusedRowKeepsTheSlotsRight(t *testing.T) {
	inBubble(t, func(w *world) {
		var bad, claims, running, most atomic.Int64
		store := w.refuses(row.ClassCaller, func(id int64) bool { return id == bad.Load() }, &claims)
		e := w.engine(claimHook{store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			sleep(ctx, 300*time.Millisecond)
			return store.Claim(ctx, c)
		}}, map[string]processor.Func{"a": func(context.Context, *processor.Task) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(3 * time.Second)
			return nil
		}}, func(c *Config) { c.Workers = 16 })
		time.Sleep(time.Second)
		at := time.Now().Add(3 * time.Second)
		ids := w.saveMany(e, "a", 60, processor.WithTime(at))
		bad.Store(ids[3])
		time.Sleep(90 * time.Second)
		for _, id := range slices.Delete(ids, 3, 4) {
			w.completed(id, time.Minute)
		}
		if most.Load() > 16 {
			w.Errorf("%d ran at once, want at most 16", most.Load())
		}
		bad.Store(0)
		time.Sleep(10 * time.Second)
		e.hands.mu.Lock()
		defer e.hands.mu.Unlock()
		if l := &e.hands.lines; l.busy != 0 || l.running != 0 || len(e.hands.held) != 0 {
			w.Errorf("in the end %d are busy, %d run, %d are held", l.busy, l.running, len(e.hands.held))
		}
	})
}

// A trigger that refuses every start must not make a statement of every row, again and again.
func TestClaimsThatAreAllRefusedStayFew(t *testing.T) {
	inBubble(t, func(w *world) {
		var off atomic.Bool
		var claims atomic.Int64
		e := w.engine(w.refuses(row.ClassCaller, func(int64) bool { return !off.Load() }, &claims),
			map[string]processor.Func{"a": nothing})
		time.Sleep(time.Second)
		var ids []int64
		for range 2000 {
			ids = append(ids, w.save(e, "a", time.Second))
		}
		time.Sleep(61 * time.Second)
		if n := claims.Load(); n > 60*100 {
			w.Errorf("%d claims in a minute in which all were refused", n)
		}
		off.Store(true)
		time.Sleep(10 * time.Second)
		for _, id := range ids {
			w.completed(id, 75*time.Second)
		}
	})
}
