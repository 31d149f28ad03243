package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// slowNodes makes a node wait for its first look at the others.
type slowNodes struct {
	Store
	took time.Duration
}

func (s slowNodes) Nodes(ctx context.Context) ([]row.Node, row.Reading, error) {
	time.Sleep(s.took)
	return s.Store.Nodes(ctx)
}

// Between what the scan of a start finds and what the first look-ahead or peek does there must be no gap: what falls into it waits
// for the next turn of the scan.
func TestStartCatchesUpAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		died time.Duration // before the start; a moment ago it still counts as alive
		slow time.Duration // look at the nodes
	}{
		"ANodeDiedAMomentAgo": {died: 100 * time.Millisecond},
		"ANodeDiedLongAgo":    {died: time.Minute},
		"TheFirstLookIsSlow":  {died: time.Minute, slow: 800 * time.Millisecond},
		"BothAtOnce":          {died: 100 * time.Millisecond, slow: 800 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w *world) {
				dying := w.engine(w.store, map[string]processor.Func{"a": nothing})
				time.Sleep(5 * time.Second)
				w.crash(dying)
				time.Sleep(c.died)
				var ids []int64
				begin := time.Now()
				for i := range int64(300) {
					ids = append(ids, w.plain(1000+i, "a", row.At(begin.Add(time.Duration(i-299)*10*time.Millisecond))))
				}
				w.engine(slowNodes{w.store, c.slow}, map[string]processor.Func{"a": nothing})
				time.Sleep(15 * time.Second)
				for _, id := range ids {
					w.once(id)
					if after := w.runs.of(id)[0].at.Sub(begin); after > time.Second {
						w.Errorf("what was %v overdue started %v after the start", begin.Sub(w.row(id).Expected.Std()), after)
					}
				}
			})
		})
	}
}

// deaf answers no read of due rows while it is away.
type deaf struct {
	Store
	away atomic.Bool
}

func (s *deaf) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	if s.away.Load() {
		return nil, &row.Error{Class: row.ClassNotApplied, Op: "find due tasks", Err: errors.New("away")}
	}
	return s.Store.Due(ctx, w)
}

// What became overdue while nobody could look must not wait for the next turn of the scan.
func TestOutageIsCaughtUpAsSoonAsItEnds(t *testing.T) {
	inBubble(t, func(w *world) {
		store := &deaf{Store: w.store}
		w.engine(store, map[string]processor.Func{"a": nothing})
		next := int64(1000)
		for range 5 {
			time.Sleep(7 * time.Second)
			store.away.Store(true)
			time.Sleep(time.Second)
			var ids []int64
			for range 30 {
				ids = append(ids, w.plain(next, "a", row.At(time.Now())))
				next++
				time.Sleep(100 * time.Millisecond)
			}
			store.away.Store(false)
			back := time.Now()
			time.Sleep(10 * time.Second)
			for _, id := range ids {
				w.once(id)
				if after := w.runs.of(id)[0].at.Sub(back); after > 2*time.Second {
					w.Errorf("task %d started %v after the end of the outage", id, after)
				}
			}
		}
	})
}
