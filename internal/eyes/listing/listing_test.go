package listing_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/memstore"
)

// at is a time of second granularity within the tests.
func at(second int) row.Time {
	return row.At(time.Date(2026, 11, 1, 0, 0, second, 0, time.UTC))
}

// plant stores n rows, as make makes them.
func plant(n int, set func(i int, r *row.Row)) *memstore.Store {
	s := memstore.New()
	for i := range n {
		r := row.Row{ID: int64(i + 1), Tag: "a", Expected: at(0), Due: at(0), Created: at(0), TTR: time.Second}
		set(i, &r)
		s.Plant(r)
	}
	return s
}

// pages reads a list to its end and returns the ids, and how many pages had stopped.
func pages(t *testing.T, s listing.Store, q listing.Query) (ids []int64, stopped int) {
	t.Helper()
	for {
		page, err := listing.Read(t.Context(), s, q)
		if err != nil {
			t.Fatal(err)
		}
		if len(page.IDs) > q.Limit || len(page.Rows) != len(page.IDs) {
			t.Fatalf("%+v: a page of %d rows and %d ids", q, len(page.Rows), len(page.IDs))
		}
		ids = append(ids, page.IDs...)
		if page.Stopped {
			stopped++
		}
		if q.After = page.Next; q.After == nil {
			return ids, stopped
		}
	}
}

var statuses = []row.Status{row.Pending, row.Executing, row.Completed, row.Failed, row.Cancelled}

// The pages of a list together have what its query says in the simplest words.
func TestPagesHaveWhatMatchesOnceAndInOrder(t *testing.T) {
	synctest.Test(t, pagesHaveWhatMatches) // no time passes in it
}

func pagesHaveWhatMatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	s := plant(600, func(_ int, r *row.Row) {
		r.Tag = fmt.Sprint("t", rng.IntN(7))
		r.Status = statuses[rng.IntN(5)]
		r.Due = at(rng.IntN(20)) // many at the same moment
		r.Created = at(rng.IntN(5))
		if rng.IntN(10) == 0 {
			r.Due = 0
		}
		if r.Status.Final() && rng.IntN(3) == 0 {
			r.Key = "k"
		}
		r.ErrorStack = []string{"", "boom", "bang"}[rng.IntN(3)]
	})
	s.Plant(row.Row{ID: 10_000, Tag: "t1", Key: "k", Expected: at(0), Due: at(1), Created: at(0), TTR: time.Second})
	all := s.All()
	for range 300 {
		q := listing.Query{Order: listing.Order(rng.IntN(3)), Limit: 1 + rng.IntN(40)}
		if rng.IntN(2) == 0 {
			q.Status = &statuses[rng.IntN(5)]
		}
		if rng.IntN(2) == 0 {
			q.Tag = fmt.Sprint("t", rng.IntN(8))
		}
		if rng.IntN(4) == 0 {
			q.From = at(rng.IntN(20))
		}
		if rng.IntN(4) == 0 {
			q.To = at(rng.IntN(20))
		}
		q.Error = []string{"", "", "b", "oo"}[rng.IntN(4)]
		if rng.IntN(4) == 0 {
			q.CreatedBy = at(rng.IntN(5))
		}
		if q.Tag != "" && rng.IntN(3) == 0 {
			q.Key, q.Order = "k", listing.ByDueDown
		}
		got, stopped := pages(t, s, q)
		if want := matching(all, q); !slices.Equal(got, want) || stopped > 0 {
			t.Fatalf("%+v, status %v: %d pages stopped, got %v, want %v", q, q.Status, stopped, got, want)
		}
	}
}

func matching(all []row.Row, q listing.Query) (ids []int64) {
	rows := slices.DeleteFunc(slices.Clone(all), func(r row.Row) bool {
		return q.Status != nil && r.Status != *q.Status || q.Tag != "" && r.Tag != q.Tag ||
			q.Key != "" && r.Key != q.Key || r.Due < q.From || !q.To.IsZero() && (r.Due.IsZero() || r.Due >= q.To) ||
			!strings.Contains(r.ErrorStack, q.Error) || !q.CreatedBy.IsZero() && r.Created > q.CreatedBy
	})
	slices.SortFunc(rows, func(a, b row.Row) int {
		byDue := cmp.Or(cmp.Compare(a.Due, b.Due), cmp.Compare(a.ID, b.ID))
		switch {
		case q.Order == listing.NewestIDs:
			return cmp.Compare(b.ID, a.ID)
		case q.Key != "" && a.Status.Final() != b.Status.Final(): // the unfinished one first
			if a.Status.Final() {
				return 1
			}
			return -1
		case q.Order == listing.ByDueDown:
			return -byDue
		default:
			return byDue
		}
	})
	for _, r := range rows {
		ids = append(ids, r.ID)
	}
	return ids
}

// looked counts the rows that are looked at.
type looked struct {
	*memstore.Store
	spans, places, matched int
}

func (l *looked) Places(ctx context.Context, spans []row.Span, limit int) ([][]row.Place, error) {
	l.spans += len(spans)
	found, err := l.Store.Places(ctx, spans, limit)
	for _, places := range found {
		l.places += len(places)
	}
	return found, err
}

func (l *looked) Match(ctx context.Context, ids []int64, m row.Match, bodies bool) ([]row.Sized, error) {
	l.matched += len(ids)
	return l.Store.Match(ctx, ids, m, bodies)
}

func (l *looked) Count(ctx context.Context, pairs []row.Pair, most int) ([]int64, error) {
	l.spans += len(pairs)
	return l.Store.Count(ctx, pairs, most)
}

// slow is a store whose rows are on a slow disk.
type slow struct{ *memstore.Store }

func (s slow) Match(ctx context.Context, ids []int64, m row.Match, bodies bool) ([]row.Sized, error) {
	time.Sleep(40 * time.Millisecond)
	return s.Store.Match(ctx, ids, m, bodies)
}

func TestAPageLooksAtRowsForABoundedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := slow{plant(20_000, func(i int, r *row.Row) { r.Due = at(i) })}
		began := time.Now()
		page, err := listing.Read(t.Context(), s, listing.Query{Status: new(row.Pending), Limit: 99, Error: "none"})
		took := time.Since(began)
		if err != nil || !page.Stopped || page.Next == nil || took > listing.LookTime {
			t.Errorf("after %v: %+v, %v", took, page, err)
		}
		began = time.Now()
		late := listing.Query{Status: new(row.Pending), LateBy: time.Nanosecond}
		n, capped, err := listing.Count(t.Context(), s, late)
		if took := time.Since(began); err != nil || !capped || n != 0 || took > 150*time.Millisecond {
			t.Errorf("counted %d, capped %t, %v, after %v", n, capped, err, took)
		}
		full, err := listing.Read(t.Context(), s, listing.Query{Status: new(row.Pending), Limit: 99})
		if err != nil || full.Stopped || len(full.IDs) != 99 {
			t.Errorf("a page without filters: %d tasks, stopped %t, %v", len(full.IDs), full.Stopped, err)
		}
	})
}

func TestAPageLooksAtABoundedNumberOfRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { looksAtABoundedNumberOfRows(t) }) // no time passes in it
}

func looksAtABoundedNumberOfRows(t *testing.T) {
	const tags = 50
	s := plant(2*listing.MostLooked+tags, func(i int, r *row.Row) {
		r.Tag, r.Due = fmt.Sprint("t", i%tags), at(i)
		if i == 2*listing.MostLooked {
			r.ErrorStack = "the one"
		}
	})
	for _, order := range []listing.Order{listing.ByDue, listing.NewestIDs} {
		l := &looked{Store: s}
		page, err := listing.Read(t.Context(), l, listing.Query{Status: new(row.Pending), Order: order, Limit: 10,
			Error: "none"})
		if err != nil || !page.Stopped || page.Next == nil || l.matched != listing.MostLooked {
			t.Errorf("order %d: %+v, %v after %d rows", order, page, err, l.matched)
		}
		if l.places > 2*listing.MostLooked {
			t.Errorf("order %d: %d entries of the index were read", order, l.places)
		}
		ids, stopped := pages(t, s, listing.Query{Status: new(row.Pending), Order: order, Limit: 10, Error: "the one"})
		if !slices.Equal(ids, []int64{2*listing.MostLooked + 1}) || stopped != 2 {
			t.Errorf("order %d: %v after %d pages that stopped", order, ids, stopped)
		}
	}
	l := &looked{Store: s}
	if _, err := listing.Read(t.Context(), l, listing.Query{Status: new(row.Pending), Limit: 100}); err != nil ||
		l.matched > 101 || l.places > 110*tags {
		t.Errorf("a page of 100 tasks looks at %d rows and %d entries, %v", l.matched, l.places, err)
	}
}

// leaving changes a task between the match and the read of its row.
type leaving struct{ *memstore.Store }

func (l leaving) Rows(ctx context.Context, ids []int64, bodies bool) ([]row.Row, []row.Broken, error) {
	r := l.All()[0]
	r.Status = row.Executing
	l.Plant(r)
	return l.Store.Rows(ctx, ids, bodies)
}

func TestATaskThatLeavesTheListMeanwhileIsNotInIt(t *testing.T) {
	s := leaving{plant(2, func(i int, r *row.Row) { r.Due = at(i) })}
	page, err := listing.Read(t.Context(), s, listing.Query{Status: new(row.Pending), Limit: 10})
	if err != nil || len(page.Rows) != 1 || page.Rows[0].ID != 2 {
		t.Errorf("%+v, %v", page.Rows, err)
	}
}

func TestAPageEndsBeforeItIsTooLarge(t *testing.T) {
	s := plant(5, func(_ int, r *row.Row) { r.Body = []byte(strings.Repeat("b", 10_000)) })
	q := listing.Query{Tag: "a", Limit: 10, MaxBytes: 25_000, Bodies: true}
	page, err := listing.Read(t.Context(), s, q)
	if err != nil || !slices.Equal(page.IDs, []int64{1, 2}) || page.Next == nil {
		t.Errorf("%+v, %v", page, err)
	}
	q.MaxBytes = 1
	if ids, _ := pages(t, s, q); len(ids) != 5 {
		t.Errorf("pages of one task have %v", ids)
	}
	q.Bodies, q.MaxBytes = false, 25_000
	if page, err := listing.Read(t.Context(), s, q); err != nil || page.Next != nil {
		t.Errorf("without bodies %+v, %v", page, err)
	}
}

func TestCountsAreCapped(t *testing.T) {
	synctest.Test(t, countsAreCapped) // no time passes in it
}

func countsAreCapped(t *testing.T) {
	s := plant(listing.MostCounted+1, func(i int, r *row.Row) {
		if r.Due = at(i); i == 0 {
			r.ErrorStack = "first"
		}
	})
	for name, c := range map[string]struct {
		q      listing.Query
		n      int
		capped bool
	}{
		"more than the most": {listing.Query{Tag: "a"}, listing.MostCounted, true},
		"exactly the most":   {listing.Query{Tag: "a", From: at(1)}, listing.MostCounted, false},
		"by error":           {listing.Query{Tag: "a", Error: "first"}, 1, false},
		"none":               {listing.Query{Tag: "b"}, 0, false},
	} {
		n, capped, err := listing.Count(t.Context(), s, c.q)
		if n != c.n || capped != c.capped || err != nil {
			t.Errorf("%s: %d, capped %t, %v", name, n, capped, err)
		}
	}
	counts, err := listing.Counts(t.Context(), s, listing.MostCounted, listing.Statuses...)
	if err != nil || len(counts) != 1 || counts[0].Count != listing.MostCounted || !counts[0].Capped {
		t.Errorf("all: %+v, %v", counts, err)
	}
	many := plant(1000, func(i int, r *row.Row) { r.Tag = fmt.Sprint("t", i/200) })
	counts, err = listing.Counts(t.Context(), many, listing.MostCounted, listing.Statuses...)
	if err != nil || len(counts) != 5 || counts[0].Count != 200 || counts[0].Capped {
		t.Errorf("of five tags: %+v, %v", counts, err)
	}
}

// A database that answers at once lets a count take more steps than a number doubles.
func TestACountTakesManySteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := plant(60_000, func(i int, r *row.Row) {
			if r.Due = at(i); i == 59_999 {
				r.ErrorStack = "last"
			}
		})
		n, capped, err := listing.Count(t.Context(), s, listing.Query{Tag: "a", Error: "last"})
		if n != 1 || capped || err != nil {
			t.Errorf("%d, capped %t, %v", n, capped, err)
		}
	})
}

func TestFailuresOfOneCauseAreOneGroup(t *testing.T) {
	texts := []string{
		`dial tcp 10.0.0.7:5432: connect: connection refused`,
		`dial tcp 10.0.0.9:5433: connect: connection refused`,
		"dial tcp [::1]:80: connect: connection refused\ngoroutine 7 [running]",
		`order "a-17" not found`, `order "b\"18" not found`,
		`user 7d444840-9dc0-11d1-b245-5ffdce74fad2 is 0x7f at 3fa85f64a1 after 1.5s`,
		`user 8d444840-9dc0-11d1-b245-5ffdce74fad3 is 0x1 at 4fb85f64a2 after 12s`,
		`decade of feed`, "",
	}
	s := plant(len(texts)+1, func(i int, r *row.Row) {
		r.Status, r.Due = row.Failed, at(i)
		if i == len(texts) { // of another tag
			r.Tag, i = "b", 0
		}
		r.ErrorStack = texts[i]
	})
	found, err := listing.ReadGroups(t.Context(), s, "")
	if err != nil || found.Looked != len(texts)+1 || found.More {
		t.Fatalf("%+v, %v", found, err)
	}
	var got []string
	for _, g := range found.Groups {
		got = append(got, fmt.Sprintf("%s %d %d-%d %s", g.Tag, g.Tasks, g.First.Sub(at(0))/time.Second,
			g.Last.Sub(at(0))/time.Second, g.Error))
	}
	want := []string{
		"a 3 0-2 dial tcp *: connect: connection refused", "a 2 5-6 user * is * at * after *s",
		"a 2 3-4 order * not found", "b 1 9-9 dial tcp *: connect: connection refused", "a 1 8-8 ",
		"a 1 7-7 decade of feed",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	q := listing.Query{Tag: "a", Status: new(row.Failed), Order: listing.ByDueDown, Limit: 2, Group: found.Groups[0].ID}
	if ids, _ := pages(t, s, q); !slices.Equal(ids, []int64{3, 2, 1}) {
		t.Errorf("of the group there are %v", ids)
	}
	if n, _, err := listing.Count(t.Context(), s, q); n != 3 || err != nil {
		t.Errorf("%d are counted, %v", n, err)
	}
}

// moving moves each row that was matched to an hour later.
type moving struct{ *memstore.Store }

func (m moving) Match(ctx context.Context, ids []int64, cond row.Match, bodies bool) ([]row.Sized, error) {
	found, err := m.Store.Match(ctx, ids, cond, bodies)
	for _, r := range m.All() {
		r.Due = at(3600)
		m.Plant(r)
	}
	return found, err
}

// A bulk change would change it.
func TestARowThatLeavesTheListWhileItIsReadIsNotInIt(t *testing.T) {
	s := moving{plant(1, func(int, *row.Row) {})}
	page, err := listing.Read(t.Context(), s, listing.Query{Tag: "a", Status: new(row.Pending), To: at(60), Limit: 5})
	if err != nil || len(page.Rows) != 0 {
		t.Errorf("%+v, %v", page, err)
	}
}

// A store cuts an error at a number of bytes, and what differs may be of any length.
func TestLongErrorsOfOneCauseAreOneGroup(t *testing.T) {
	for _, format := range []string{
		"user %s " + strings.Repeat("ü", 300), "decode \"%s " + strings.Repeat("x", 300),
		"post \"https://shop/%s" + strings.Repeat("x", 230) + "\": connection refused, and tried once more by this",
	} {
		s := plant(8, func(i int, r *row.Row) {
			r.Status, r.Due, r.ErrorStack = row.Failed, at(i), fmt.Sprintf(format, strings.Repeat("7", 1+4*i))
		})
		found, err := listing.ReadGroups(t.Context(), s, "a")
		if err != nil || len(found.Groups) != 1 || found.Groups[0].Tasks != 8 ||
			!utf8.ValidString(found.Groups[0].Error) {
			t.Errorf("%.12s: %+v, %v", format, found, err)
		}
	}
}

// With * in them, secrets are not recognised.
func TestGroupsShowNoSecrets(t *testing.T) {
	for format, want := range map[string]string{
		"dial me:p4s5w0rd%d@10.0.0.1:3306 at 12:00": "dial me:[delaytask-redacted]@* at *:*",
		"token dt_Zq3canaryXw9Zq3canaryXw%d is old": "token [delaytask-redacted] is old",
		"x%d " + strings.Repeat("x ", 70) + "u:p4s5w0rd" + strings.Repeat("x1", 300): "x* " + strings.Repeat("x ", 70) +
			"u:[dela",
	} {
		s := plant(2, func(i int, r *row.Row) {
			r.Status, r.Due, r.ErrorStack = row.Failed, at(i), fmt.Sprintf(format, i)
		})
		found, err := listing.ReadGroups(t.Context(), s, "a")
		if err != nil || len(found.Groups) != 1 {
			t.Fatalf("%.40s: %+v, %v", format, found, err)
		}
		if got := listing.Masked(found.Groups[0].Example, redact.Text); got != want {
			t.Errorf("%.40s is shown as %s", format, got)
		}
	}
}

func TestTheNewestFailuresAreGrouped(t *testing.T) {
	s := plant(listing.MostGrouped+1, func(i int, r *row.Row) {
		if r.Status, r.Due, r.ErrorStack = row.Failed, at(i), "boom"; i == 0 {
			r.ErrorStack = "the oldest"
		}
	})
	found, err := listing.ReadGroups(t.Context(), s, "a")
	if err != nil || !found.More || len(found.Groups) != 1 || found.Groups[0].Tasks != listing.MostGrouped {
		t.Errorf("%+v, %v", found, err)
	}
}

// The tasks of many tags are due together, as at midnight.
func TestAPageReadsFewTagsOfManyThatAreDueTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes in it
		const tags = 2000
		s := plant(2*tags, func(i int, r *row.Row) { r.Tag, r.Due = fmt.Sprint("t", i%tags), at(i/tags) })
		for _, order := range []listing.Order{listing.ByDue, listing.ByDueDown} {
			q := listing.Query{Status: new(row.Pending), Order: order, Limit: 100}
			var ids []int64
			for range 45 {
				l := &looked{Store: s}
				page, err := listing.Read(t.Context(), l, q)
				if err != nil || l.spans > 500 {
					t.Fatalf("order %d after %v: %d reads, %v", order, q.After, l.spans, err)
				}
				ids = append(ids, page.IDs...)
				if q.After = page.Next; q.After == nil {
					break
				}
			}
			if order == listing.ByDueDown {
				slices.Reverse(ids)
			}
			if len(ids) != 2*tags || !slices.IsSorted(ids) {
				t.Errorf("order %d has %d tasks, sorted %t", order, len(ids), slices.IsSorted(ids))
			}
		}
	})
}

func TestAPageOfAllTagsReadsThoseAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // no time passes in it
		const tags = 2000
		s := plant(3*tags, func(i int, r *row.Row) { r.Tag, r.Due = fmt.Sprint("t", i%tags), at(i) })
		for _, order := range []listing.Order{listing.ByDue, listing.ByDueDown} {
			q := listing.Query{Status: new(row.Pending), Order: order, Limit: 10}
			for range 3 {
				l := &looked{Store: s}
				page, err := listing.Read(t.Context(), l, q)
				if err != nil || len(page.IDs) != 10 || l.spans > 50 {
					t.Errorf("order %d after %v: %d tasks by %d reads, %v", order, q.After, len(page.IDs), l.spans, err)
				}
				q.After = page.Next
			}
		}
	})
}

func TestOfVeryManyTagsTheLongestDueAreShown(t *testing.T) {
	all := []time.Time{{}, at(5).Std(), at(1).Std(), {}, at(3).Std(), at(4).Std()}
	first, left := listing.LongestDue(all, 3, func(due *time.Time) time.Time { return *due })
	if !slices.Equal(first, []time.Time{at(1).Std(), at(3).Std(), at(4).Std()}) || left != 3 {
		t.Errorf("%v, and %d others", first, left)
	}
	if first, left := listing.LongestDue(all, 6, nil); len(first) != 6 || left != 0 {
		t.Errorf("of few tags: %v, and %d others", first, left)
	}
}

func TestOfVeryManyTagsTheOldestAreCounted(t *testing.T) {
	const tags = 3000
	l := &looked{Store: plant(3*tags, func(i int, r *row.Row) {
		r.Tag, r.Due = fmt.Sprintf("t%04d", i%tags), at(i%tags*7%tags)
		if r.Status = row.Pending; i < tags {
			r.Status = row.Completed
		}
	})}
	counts, err := listing.Counts(t.Context(), l, 100, listing.Statuses...)
	if err != nil || len(counts) != 2*tags || l.spans > 1000 {
		t.Fatalf("%d counts by %d reads, %v", len(counts), l.spans, err)
	}
	exact := 0
	for _, c := range counts {
		switch {
		case c.Capped && c.Count != 1:
			t.Errorf("%+v", c)
		case c.Capped:
		case c.Status == row.Pending && c.Count != 2, c.Oldest >= at(300):
			t.Errorf("%+v", c)
		default:
			exact++
		}
	}
	if exact < 300 {
		t.Errorf("%d of %d counts are exact", exact, len(counts))
	}
}
