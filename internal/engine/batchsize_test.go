package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// heavy is a database that writes one row after another, each for as long.
type heavy struct {
	store.Store
	each time.Duration
	turn chan struct{}
}

func (s heavy) write(rows int) {
	s.turn <- struct{}{}
	time.Sleep(time.Duration(rows) * s.each)
	<-s.turn
}

func (s heavy) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	s.write(len(c.Rows))
	won, err := s.Store.Claim(ctx, c)
	s.write(len(c.Rows))
	return won, err
}

func (s heavy) Update(ctx context.Context, tx store.Tx, changes []row.Change) (int, error) {
	s.write(len(changes))
	return s.Store.Update(ctx, tx, changes)
}

// Five processes that claim as much as they have room for are back when their leases are over: each claims again, the
// database is slower yet, and nothing is ever done. What the database writes in 15 seconds must be done in 60: claims
// are in vain until they are smaller, and what has lost its lease three times goes one by one.
func TestABacklogIsWorkedOffAlthoughLargeClaimsOutlastTheLeases(t *testing.T) {
	oneProcessor(t)
	inBubble(t, func(w *world) {
		const tasks = 5000
		due := row.At(time.Now().Add(-time.Minute))
		for i := range int64(tasks) {
			w.store.Plant(
				row.Row{
					ID:          1000 + i,
					Tag:         "a",
					Body:        []byte("{}"),
					Due:         due + row.Time(i),
					Expected:    due,
					TTR:         time.Second,
					MaxAttempts: 20,
				},
			)
		}
		db := heavy{w.store, time.Millisecond, make(chan struct{}, 1)}
		for range 5 {
			w.engine(db, serving{"a": nothing})
		}
		time.Sleep(time.Minute)
		if done := w.done("a"); done < tasks {
			w.Errorf("%d of %d tasks are done", done, tasks)
		}
		for i := range int64(tasks) {
			w.ran(1000+i, 1)
		}
	})
}

// Leases of a minute never say that the claims take long. A claim goes on when its caller has given up.
func TestClaimsThatOutlastTheirCallGetSmaller(t *testing.T) {
	inBubble(t, func(w *world) {
		const tasks = 2000
		due := row.At(time.Now().Add(-time.Minute))
		for i := range int64(tasks) {
			w.store.Plant(
				row.Row{
					ID:          1000 + i,
					Tag:         "a",
					Body:        []byte("{}"),
					Due:         due + row.Time(i),
					Expected:    due,
					TTR:         time.Minute,
					MaxAttempts: 20,
				},
			)
		}
		turn := make(chan struct{}, 1)
		db := claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			answered := make(chan row.Claimed, 1)
			go func() {
				select {
				case turn <- struct{}{}:
				case <-ctx.Done():
					return
				}
				defer func() { <-turn }()
				time.Sleep(time.Duration(len(c.Rows)) * 25 * time.Millisecond)
				claimed, err := w.store.Claim(context.WithoutCancel(ctx), c)
				if err != nil {
					w.Error(err)
				}
				answered <- claimed
			}()
			select {
			case claimed := <-answered:
				return claimed, nil
			case <-ctx.Done():
				return row.Claimed{}, classError(row.ClassUnknown, "given up")
			}
		}}
		w.engine(db, serving{"a": nothing}, func(c *Config) { c.Concurrency = 600 })
		time.Sleep(4 * time.Minute)
		if done := w.done("a"); done < tasks {
			w.Errorf("%d of %d tasks are done", done, tasks)
		}
	})
}

// A claim of a backlog is large and takes long; a task that is due meanwhile must not wait for it.
func TestWhatIsDueNowDoesNotTravelWithABacklog(t *testing.T) {
	inBubble(t, func(w *world) {
		w.backlog(3000, "a", row.At(time.Now().Add(-time.Hour)))
		store := claimHook{w.store, func(ctx context.Context, c row.Claim) (row.Claimed, error) {
			backlog, others := batch.Split(c.Rows, func(r row.Ref) bool { return r.ID < 10_000 })
			if len(backlog) > 0 {
				lifecycle.Sleep(ctx, 80*time.Millisecond)
			}
			if len(backlog) > 0 && len(others) > 0 {
				w.Errorf("a claim holds %d rows of the backlog and %d others", len(backlog), len(others))
			}
			return w.store.Claim(ctx, c)
		}}
		e := w.engine(store, serving{"a": nothing})
		var ids []int64
		for range 100 {
			ids = append(ids, w.save(e, "a", 2*time.Second), w.save(e, "a", 0))
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		w.allCompleted(ids, 5*time.Millisecond)
	})
}

// The first claim of a backlog gets no answer until its time is up. The rest of the backlog does not wait for it.
func TestAClaimThatHangsDoesNotHoldUpTheBacklog(t *testing.T) {
	inBubble(t, func(w *world) {
		ids := w.backlog(2000, "a", row.At(time.Now().Add(-time.Hour)))
		var first sync.Once
		hung := make(chan []row.Ref, 1)
		w.engine(claimHook{w.store, func(ctx context.Context, c row.Claim) (claimed row.Claimed, err error) {
			hangs := false
			first.Do(func() { hangs = true })
			if !hangs {
				return w.store.Claim(ctx, c)
			}
			hung <- c.Rows
			<-ctx.Done()
			return row.Claimed{}, classError(row.ClassUnknown, "given up")
		}}, serving{"a": nothing})
		time.Sleep(3 * time.Second)
		if n := len(<-hung); w.done("a") < len(ids)-n {
			w.Errorf("%d of %d tasks are done; %d of the first claim hang", w.done("a"), len(ids), n)
		}
		time.Sleep(30 * time.Second)
		for _, id := range ids {
			w.ran(id, 1)
		}
	})
}
