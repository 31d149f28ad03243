package scanner

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// history is what there is to purge, by status.
type history struct {
	rows   map[row.Status]int
	takes  time.Duration // of one statement
	fail   map[row.Status]error
	before map[row.Status]row.Time
	calls  int
	reads  int // of the tags
	busy   time.Duration

	most          int // rows that a transaction may have; 0: any number
	claimsAreSlow bool
}

func (h *history) tags(context.Context, row.Status, row.Time) ([]string, error) {
	h.reads++
	return []string{"a"}, nil
}

func (h *history) delete(_ context.Context, s row.Status, tags []string, before row.Time, limit int) (
	int, []string, error) {
	time.Sleep(h.takes)
	h.calls++
	h.busy += h.takes
	if h.before == nil {
		h.before = map[row.Status]row.Time{}
	}
	h.before[s] = before
	if err := h.fail[s]; err != nil {
		return 0, nil, err
	}
	n := min(limit, h.rows[s])
	if h.most > 0 && n > h.most {
		return 0, nil, errors.New("transaction too large")
	}
	h.rows[s] -= n
	if n < limit {
		tags = nil
	}
	return n, tags, nil
}

func (h *history) pass(keep map[row.Status]time.Duration) *Purge {
	return &Purge{
		Tags: h.tags, Delete: h.delete, Keep: keep, Batch: 500, Limit: 100,
		Now:  func() (row.Time, bool) { return row.At(time.Now()), true },
		Busy: func() bool { return h.claimsAreSlow },
	}
}

const day = 24 * time.Hour

func TestPurgeKeepsEachStatusForItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &history{rows: map[row.Status]int{row.Completed: 1200, row.Failed: 10, row.Cancelled: 10, row.Pending: 10}}
		now := row.At(time.Now())
		mustPass(t, h.pass(map[row.Status]time.Duration{row.Completed: 7 * day, row.Failed: 30 * day,
			row.Cancelled: 0}).Pass)
		if h.rows[row.Completed] != 0 || h.rows[row.Failed] != 0 || h.rows[row.Cancelled] != 10 ||
			h.rows[row.Pending] != 10 {
			t.Fatalf("left: %v", h.rows)
		}
		if got := now.Sub(h.before[row.Failed]); got > 30*day || got < 30*day-time.Minute {
			t.Errorf("failed tasks are kept for %v", got)
		}
	})
}

func TestPurgeLeavesTheDatabaseAloneForMostOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &history{rows: map[row.Status]int{row.Completed: 20_000}, takes: 50 * time.Millisecond}
		began := time.Now()
		mustPass(t, h.pass(map[row.Status]time.Duration{row.Completed: day}).Pass)
		if all := time.Since(began); h.rows[row.Completed] != 0 || all < 3*h.busy || all > 5*h.busy {
			t.Fatalf("%d rows left; busy for %v of %v, want between a third and a fifth", h.rows[row.Completed], h.busy,
				all)
		}
	})
}

func TestPurgeIsBoundedAndServesEveryStatus(t *testing.T) {
	locked := errors.New("locked")
	for want, fail := range map[error]map[row.Status]error{nil: nil, locked: {row.Completed: locked}} {
		synctest.Test(t, func(t *testing.T) {
			h := &history{rows: map[row.Status]int{row.Completed: 1 << 30, row.Failed: 1000}, fail: fail}
			err := h.pass(map[row.Status]time.Duration{row.Completed: day, row.Failed: day}).Pass(t.Context())
			if !errors.Is(err, want) || h.rows[row.Failed] != 0 || fail == nil && h.calls != 100 {
				t.Errorf("%v, %d statements, %d failed tasks left; want %v, 100 and none", err, h.calls,
					h.rows[row.Failed], want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		h := &history{rows: map[row.Status]int{row.Completed: 1 << 30}, takes: 90 * time.Millisecond}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		err := h.pass(map[row.Status]time.Duration{row.Completed: day}).Pass(ctx)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Pass: %v, want the context's error", err)
		}
	})
}

func TestPurgeDeletesLessWhileItsStatementsTakeLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &history{rows: map[row.Status]int{row.Completed: 1 << 20}, takes: time.Second}
		p := h.pass(map[row.Status]time.Duration{row.Completed: day})
		for range 10 {
			mustPass(t, p.Pass)
		}
		deleted := 1<<20 - h.rows[row.Completed]
		if h.calls != 10 || deleted > 500+250+125+62+31+15+4*10 {
			t.Errorf("%d statements in 10 passes on a slow database, %d rows", h.calls, deleted)
		}
		h.takes = time.Millisecond
		mustPass(t, p.Pass)
		if more := 1<<20 - h.rows[row.Completed] - deleted; more < 40_000 {
			t.Errorf("when it is quick again, a pass deletes %d rows", more)
		}
	})
}

func TestPurgeTakesOneBatchWhileTheDatabaseIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &history{rows: map[row.Status]int{row.Completed: 1 << 20, row.Failed: 600}, claimsAreSlow: true}
		p := h.pass(map[row.Status]time.Duration{row.Completed: day, row.Failed: day})
		for n := range 4 {
			mustPass(t, p.Pass)
			if h.calls != n+1 {
				t.Fatalf("%d statements in %d passes", h.calls, n+1)
			}
		}
		if h.rows[row.Failed] != 0 {
			t.Errorf("%d failed tasks are left: their turn never came", h.rows[row.Failed])
		}
	})
}

func TestPurgeReadsTheTagsOnceAMinute(t *testing.T) {
	for keep, most := range map[time.Duration]int{30 * day: 10, 10 * time.Minute: 60, time.Second: 120} {
		synctest.Test(t, func(t *testing.T) {
			h := &history{rows: map[row.Status]int{row.Completed: 100_000}}
			p := h.pass(map[row.Status]time.Duration{row.Completed: keep})
			for range 120 {
				mustPass(t, p.Pass)
				time.Sleep(5 * time.Second)
			}
			if h.rows[row.Completed] != 0 || h.reads > most || h.reads < most-2 {
				t.Errorf("kept for %v: %d rows are left, and the tags are read %d times in 10 min, want %d at most",
					keep, h.rows[row.Completed], h.reads, most)
			}
		})
	}
}

// A replication group refuses transactions over 150 MB, a server those over max_binlog_cache_size, and a call has its
// time: a smaller batch would pass.
func TestPurgeLearnsFromABatchThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &history{rows: map[row.Status]int{row.Completed: 1000}, most: 100}
		p := h.pass(map[row.Status]time.Duration{row.Completed: day})
		p.Limit = 40
		for range 100 {
			_ = p.Pass(t.Context())
			time.Sleep(5 * time.Second)
		}
		if left := h.rows[row.Completed]; left > 0 {
			t.Errorf("%d rows are left after 100 passes", left)
		}
	})
}
