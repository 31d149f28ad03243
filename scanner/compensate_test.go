package scanner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/row"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// backlog is a table of overdue rows that are handed to one slow or quick worker per tag.
type backlog struct {
	mu      sync.Mutex
	began   time.Time
	rows    map[string][]row.Due // by tag, ordered by (due, id)
	tags    []string
	work    map[string]time.Duration // how long Offer blocks
	readErr error
	panics  bool
	stay    bool // rows stay in the table when they are taken
	locked  bool // no row without a due time can be changed

	reads   int
	readers int // at this moment
	most    int // readers at a time
	offered map[string][]int64
	firstAt map[string]time.Duration
	adopted []int64
}

func newBacklog(tags ...string) *backlog {
	return &backlog{
		began: time.Now(), tags: tags, rows: map[string][]row.Due{}, work: map[string]time.Duration{},
		offered: map[string][]int64{}, firstAt: map[string]time.Duration{},
	}
}

// add stores n rows of the tag that were due late ago, ten at each microsecond.
func (b *backlog) add(tag string, n int, late time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range n {
		id := int64(len(b.rows[tag]) + 1)
		due := row.At(time.Now().Add(-late)) + row.Time(i/10)
		b.rows[tag] = append(b.rows[tag], row.Due{ID: id, Tag: tag, Due: due, Version: 3})
	}
}

func (b *backlog) due(_ context.Context, w row.Window) ([]row.Due, error) {
	b.mu.Lock()
	b.reads++
	b.readers++
	b.most = max(b.most, b.readers)
	b.mu.Unlock()
	time.Sleep(time.Millisecond)

	b.mu.Lock()
	defer b.mu.Unlock()
	b.readers--
	var found []row.Due
	for _, tag := range w.Tags {
		for _, r := range b.rows[tag] {
			if r.Due < w.To && (r.Due > w.From || r.Due == w.From && r.ID > w.AfterID) {
				found = append(found, r)
			}
		}
	}
	slices.SortFunc(found, func(a, b row.Due) int { return cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID)) })
	return found[:min(len(found), w.Limit)], b.readErr
}

func (b *backlog) offer(ctx context.Context, tag string, page []row.Due) error {
	if b.panics {
		panic("a bug")
	}
	b.mu.Lock()
	if _, ok := b.firstAt[tag]; !ok {
		b.firstAt[tag] = time.Since(b.began)
	}
	work := b.work[tag]
	b.mu.Unlock()
	select {
	case <-time.After(work):
	case <-ctx.Done():
		return ctx.Err()
	}

	b.mu.Lock()
	defer b.mu.Unlock()
	taken := map[int64]bool{}
	for _, r := range page {
		if r.Tag != tag {
			return fmt.Errorf("row %d of tag %s was offered as %s", r.ID, r.Tag, tag)
		}
		b.offered[tag] = append(b.offered[tag], r.ID)
		taken[r.ID] = true
	}
	if !b.stay {
		b.rows[tag] = slices.DeleteFunc(b.rows[tag], func(r row.Due) bool { return taken[r.ID] })
	}
	return nil
}

func (b *backlog) adopt(_ context.Context, rows []row.Ref) error {
	if b.locked {
		time.Sleep(time.Second)
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, ref := range rows {
		b.adopted = append(b.adopted, ref.ID)
		for tag := range b.rows {
			for i := range b.rows[tag] {
				if r := &b.rows[tag][i]; r.ID == ref.ID && r.Version == ref.Version && r.Due.IsZero() {
					r.Due = row.At(b.began)
				}
			}
		}
	}
	return nil
}

func (b *backlog) served() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.tags)
}

func (b *backlog) scan() *Compensate {
	return &Compensate{
		Due: b.due, Adopt: b.adopt, Tags: b.served, Offer: b.offer, Page: 50, Turns: 4,
		Log:     slog.New(slog.DiscardHandler),
		Now:     func() (row.Time, bool) { return row.At(time.Now()), true },
		Turn:    func(int64, string) int { return 0 },
		Crowd:   func() time.Duration { return 1 },
		Share:   func(string, int) (row.Share, bool) { return row.Share{}, false },
		Waiting: func(string) int { return 0 },
	}
}

func mustPass(t *testing.T, pass func(context.Context) error) {
	t.Helper()
	mustOK(t, pass(t.Context()))
}

// whole makes a pass and waits for what it began.
func whole(t *testing.T, c *Compensate) {
	t.Helper()
	mustPass(t, c.Pass)
	c.Wait()
}

func manyTags(n int) []string {
	tags := make([]string, n)
	for i := range tags {
		tags[i] = fmt.Sprintf("tag-%03d", i)
	}
	return tags
}

func TestScanHandsOverWhatIsASecondOverdue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog(manyTags(300)...)
		b.add("tag-007", 10, 900*time.Millisecond) // a timer may still be on it
		blind := b.scan()
		blind.Now = func() (row.Time, bool) { return 0, false }
		if whole(t, blind); b.reads != 0 {
			t.Errorf("%d reads without a clock", b.reads)
		}
		if whole(t, b.scan()); b.reads != 1 || len(b.offered) != 0 {
			t.Errorf("%d reads, offered %v; want one read and nothing", b.reads, b.offered)
		}
		b.add("tag-008", 20, time.Minute)
		b.add("tag-009", 20, 1001*time.Millisecond)
		b.add("paused", 20, time.Minute)
		whole(t, b.scan())
		if len(b.offered["tag-008"]) != 20 || len(b.offered["tag-009"]) != 20 || len(b.offered) != 2 || b.reads != 2 {
			t.Errorf("%d reads, offered %v", b.reads, b.offered)
		}
	})
}

func TestScanReadsALongBacklogOnceAndInOrder(t *testing.T) {
	for n, stay := range map[int]bool{5000: false, 500: true} { // several turns of pages, and one
		synctest.Test(t, func(t *testing.T) {
			b := newBacklog("a")
			b.add("a", n, time.Minute)
			b.work["a"], b.stay = time.Second, stay
			whole(t, b.scan())
			if got := b.offered["a"]; len(got) != n || !slices.IsSorted(got) || len(slices.Compact(got)) != n {
				t.Fatalf("offered %d rows, in order: %t; want %d", len(got), slices.IsSorted(got), n)
			}
			if want := n/50 + 3; b.reads > want {
				t.Errorf("%d reads, want at most %d", b.reads, want)
			}
		})
	}
}

func TestPassDuringATurnIsMadeUpForAtItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog("a")
		b.add("a", 3, time.Minute)
		b.work["a"] = 2 * time.Second
		c := b.scan()
		mustPass(t, c.Pass)
		time.Sleep(time.Second)
		synctest.Wait()
		b.add("a", 3, time.Hour) // behind the reader
		mustPass(t, c.Pass)
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := len(b.offered["a"]); n != 6 {
			t.Errorf("%d rows were offered, want 6", n)
		}
		if b.reads > 3 {
			t.Errorf("%d reads", b.reads)
		}
	})
}

func TestASlowTagWithALongBacklogHoldsUpNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tags := manyTags(300)
		b := newBacklog(tags...)
		b.add("tag-000", 20_000, time.Hour)
		b.work["tag-000"] = time.Minute
		for _, tag := range tags[1:] {
			b.add(tag, 3, 10*time.Second) // younger, so behind the 20,000 in a read over all tags
		}
		c := b.scan()
		ctx, cancel := context.WithCancel(t.Context())
		mustOK(t, c.Pass(ctx))
		time.Sleep(time.Second)
		synctest.Wait()
		for _, tag := range tags[1:] {
			if len(b.offered[tag]) != 3 {
				t.Fatalf("%s has waited for the slow tag", tag)
			}
		}
		if b.most > compensateReaders {
			t.Errorf("%d reads at a time", b.most)
		}

		// Later passes leave the slow tag to its own turn, and are cheap again.
		before := b.reads
		b.add("tag-299", 3, 10*time.Second)
		mustOK(t, c.Pass(ctx))
		synctest.Wait()
		if got := b.reads - before; got != 1 || len(b.offered["tag-299"]) != 6 {
			t.Errorf("the next pass took %d reads and handed over %d rows of another tag, want 1 and 6", got,
				len(b.offered["tag-299"]))
		}
		cancel()
		c.Wait()
	})
}

func TestScanLeavesATagThatIsPausedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog("a")
		b.add("a", 5000, time.Minute)
		b.work["a"] = time.Second
		c := b.scan()
		mustPass(t, c.Pass)
		time.Sleep(10 * time.Second)
		b.mu.Lock()
		b.tags = nil
		b.mu.Unlock()
		c.Wait()
		if n := len(b.offered["a"]); n > 550 {
			t.Fatalf("%d rows were handed over after the pause at 500", n)
		}
	})
}

func TestScanGivesRowsOfPlainInsertsTheirDueTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog("a")
		for id := range int64(120) {
			b.rows["a"] = append(b.rows["a"], row.Due{ID: id + 1, Tag: "a"})
		}
		b.rows["a"] = append(b.rows["a"], row.Due{ID: 500, Tag: "a", Due: row.At(time.Now().Add(-time.Minute))})
		whole(t, b.scan())
		if len(b.adopted) != 120 || !slices.Equal(b.offered["a"], []int64{500}) {
			t.Fatalf("adopted %d rows, offered %v; want 120 and [500]", len(b.adopted), b.offered["a"])
		}
	})
}

// Rows without a due time that another transaction holds cannot be adopted, and lie in front of all others.
func TestOverdueRowsBehindAPageThatCannotBeAdopted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog("a")
		b.locked = true
		for id := range int64(5) {
			b.rows["a"] = append(b.rows["a"], row.Due{ID: id + 1, Tag: "a"})
		}
		b.rows["a"] = append(b.rows["a"], row.Due{ID: 100, Tag: "a", Due: row.At(time.Now().Add(-time.Hour))})
		c := b.scan()
		c.Page = 5
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		mustOK(t, c.Pass(ctx))
		c.Wait()
		if !slices.Equal(b.offered["a"], []int64{100}) {
			t.Errorf("within a minute and %d reads %v were offered, want the overdue row", b.reads, b.offered["a"])
		}
	})
}

func TestScanComesBackAfterFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog("a")
		b.add("a", 500, time.Minute)
		c := b.scan()
		b.readErr = errors.New("the database is away")
		if err := c.Pass(t.Context()); !errors.Is(err, b.readErr) {
			t.Fatalf("Pass: %v, want the reader's error", err)
		}
		b.readErr, b.panics = nil, true
		whole(t, c)
		b.panics = false
		whole(t, c)
		if n := len(b.offered["a"]); n != 500 {
			t.Fatalf("%d rows were handed over after the failures, want 500", n)
		}
	})
}

// mustOK ends the test when err is not nil.
func mustOK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestScanReadsNoBacklogAgainThatWaitsToBeClaimed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog("a")
		b.add("a", 10, time.Minute)
		b.stay = true
		c := b.scan()
		c.Turn = func(id int64, _ string) int { return int(id % 2) }
		c.Waiting = func(string) int {
			if time.Since(b.began) < 3*time.Second {
				return 3 // of five
			}
			return 2
		}
		ctx, cancel := context.WithCancel(t.Context())
		mustOK(t, c.Pass(ctx))
		time.Sleep(2900 * time.Millisecond)
		b.mu.Lock()
		before := b.reads
		b.mu.Unlock()
		time.Sleep(time.Second)
		cancel()
		c.Wait()
		if before != 1 || b.reads == 1 {
			t.Errorf("%d reads while the rows waited, %d with those after it", before, b.reads)
		}
	})
}

func TestScanTakesWhatNodesThatLiveDoNotTake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBacklog("a")
		b.add("a", 60, time.Minute) // more than a page
		c := b.scan()
		c.Turn = func(int64, string) int { return 4 }
		c.Share = func(string, int) (row.Share, bool) { return row.Share{1}, true }
		c.Due = func(ctx context.Context, w row.Window) ([]row.Due, error) {
			if w.Share != nil {
				return nil, nil
			}
			return b.due(ctx, w)
		}
		waiting := 1
		c.Waiting = func(string) int { return waiting }
		for range 6 {
			whole(t, c)
			time.Sleep(5 * time.Second)
		}
		if n := len(b.offered["a"]); n != 0 {
			t.Errorf("%d rows were taken by a node with enough to do", n)
		}
		waiting = 0
		if whole(t, c); len(b.offered["a"]) != 50 {
			t.Errorf("%d rows were taken, want a page", len(b.offered["a"]))
		}
		if whole(t, c); len(b.offered["a"]) != 50 {
			t.Errorf("%d rows were taken, also new ones", len(b.offered["a"]))
		}
	})
}
