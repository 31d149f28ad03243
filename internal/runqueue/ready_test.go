package runqueue

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue/timer"
)

// queueFor returns a queue with slots for concurrency tasks. Every tag may use limit of them.
func queueFor(concurrency, limit int, tags ...string) *Queue {
	q := New(concurrency, 5, Limits{Timers: 1000, Backlog: 1000})
	for _, tag := range tags {
		q.Serve(tag, true, limit)
	}
	return q
}

// pickAny picks timely rows and then the backlog, as the claimer does.
func (q *Queue) pickAny(most int, now row.Time) []*Item {
	picked := q.Pick(most, now, false)
	return append(picked, q.Pick(most-len(picked), now, true)...)
}

// sightings makes n rows of a tag, with ids from first on, due one microsecond after the other.
func sightings(tag string, first int64, n int) []row.Due {
	ds := make([]row.Due, n)
	for i := range ds {
		ds[i] = row.Due{ID: first + int64(i), Tag: tag, Due: row.Time(first + int64(i))}
	}
	return ds
}

func idsIn(items []*Item) (ids []int64) {
	for _, it := range items {
		ids = append(ids, it.ID)
	}
	return ids
}

func TestWhatIsDueNowGetsHalfOfTheSlotsBesideABacklog(t *testing.T) {
	for _, concurrency := range []int{1, 2, 3, 8, 64} {
		q := queueFor(concurrency, concurrency, "old", "new")
		q.AddDue(sightings("old", 1, 500), true, 0)
		q.AddDue(sightings("new", 1001, 500), false, 0)
		fresh, old := 0, 0
		for range 100 {
			for _, it := range q.pickAny(MaxClaim, 0) {
				if it.ID > 1000 {
					fresh++
				} else {
					old++
				}
				q.Release(it, Ended)
			}
			if fresh+old > 300 {
				break
			}
		}
		if fresh < old-1 || old == 0 {
			t.Errorf("concurrency %d: %d new rows and %d of the backlog", concurrency, fresh, old)
		}
	}
}

func TestEmptyQueueLeavesItsPlacesToTheOther(t *testing.T) {
	for backlog, want := range map[bool]int{false: 64, true: 56} { // an eighth is kept for what falls due meanwhile
		q := queueFor(64, 64, "a")
		q.AddDue(sightings("a", 1, 100), backlog, 0)
		if got := len(q.pickAny(MaxClaim, 0)); got != want {
			t.Errorf("backlog %t: %d slots are used, want %d", backlog, got, want)
		}
	}
}

func TestBacklogGoesRoundTheTags(t *testing.T) {
	q := queueFor(9, 9, "a", "b", "c")
	q.AddDue(sightings("a", 1, 100), true, 0)
	q.AddDue(sightings("b", 201, 100), true, 0)
	q.AddDue(sightings("c", 401, 100), true, 0)
	count := map[string]int{}
	for range 10 {
		for _, it := range q.pickAny(MaxClaim, 0) {
			count[it.tag.name]++
			q.Release(it, Ended)
		}
	}
	for _, tag := range []string{"a", "b", "c"} { // one of the nine slots is kept for a tag that comes
		if n := count[tag]; n < 26 || n > 27 {
			t.Errorf("picked %v, want a third of 80 of each", count)
		}
	}
}

func TestTagTakesAtMostItsConcurrency(t *testing.T) {
	q := queueFor(10, 3, "a", "b")
	q.AddDue(sightings("a", 1, 50), false, 0)
	q.AddDue(sightings("a", 101, 50), true, 0)
	q.AddDue(sightings("b", 201, 50), true, 0)
	first := q.pickAny(MaxClaim, 0)
	count := map[string]int{}
	for _, it := range first {
		count[it.tag.name]++
	}
	if count["a"] != 3 || count["b"] != 3 || len(q.pickAny(MaxClaim, 0)) != 0 {
		t.Errorf("picked %v, want 3 of each", count)
	}
	q.Release(first[0], Ended)
	if again := q.pickAny(MaxClaim, 0); len(again) != 1 || again[0].tag != first[0].tag {
		t.Errorf("a free slot of the tag gave %v", idsIn(again))
	}
}

func TestRowWithoutADueTimeIsNotReady(t *testing.T) {
	q := queueFor(1, 1, "a")
	if taken := q.AddDue([]row.Due{{ID: 1, Tag: "a"}}, false, ms(0)); taken != 0 || len(q.pickAny(1, 0)) != 0 {
		t.Errorf("%d rows without a due time were taken", taken)
	}
}

func TestPriorityThenDueTimeThenID(t *testing.T) {
	q := queueFor(1, 1, "a", "b")
	q.AddDue([]row.Due{
		{ID: 1, Tag: "a", Due: 50}, {ID: 2, Tag: "b", Due: 40}, {ID: 3, Tag: "a", Due: 90, Priority: 100},
		{ID: 4, Tag: "b", Due: 10, Priority: -100}, {ID: 6, Tag: "a", Due: 60}, {ID: 5, Tag: "b", Due: 60},
	}, false, 0)
	var order []int64
	for got := q.pickAny(1, 0); len(got) > 0; got = q.pickAny(1, 0) {
		order = append(order, got[0].ID)
		q.Release(got[0], Ended)
	}
	if !slices.Equal(order, []int64{3, 2, 1, 5, 6, 4}) {
		t.Errorf("picked %v", order)
	}
}

func (q *Queue) waits(id int64) bool { return q.ready.waiting[id] != nil }

func TestClosedTagForgetsWhatWaitsAndKeepsWhatIsOwned(t *testing.T) {
	q := queueFor(1, 1, "a", "b")
	q.AddDue(sightings("a", 1, 3), false, 0)
	owned := q.pickAny(1, 0)
	q.AddDue(sightings("a", 101, 3), true, 0)
	q.AddDue([]row.Due{{ID: 200, Tag: "a", Due: 1, CrashCount: 3}}, false, 0)
	q.Serve("a", false, 0)
	if !q.Owns(owned[0].ID) || q.waits(2) || q.waits(101) || q.waits(200) {
		t.Error("want what is owned, and nothing that waits")
	}
	q.Release(owned[0], Unclaimed)
	if q.waits(owned[0].ID) || len(q.pickAny(1, 0)) != 0 {
		t.Error("a row of a closed tag waits again")
	}
	q.Serve("a", true, 1)
	q.AddDue(sightings("a", 1, 1), false, 0)
	if got := q.pickAny(1, 0); len(got) != 1 {
		t.Error("the tag is open again and nothing runs")
	}
}

// TestARowIsInOnePlace plays random moves against a plain model of where each row is.
func TestARowIsInOnePlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		concurrency := rapid.IntRange(1, 5).Draw(t, "concurrency")
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		q := New(concurrency, 5, Limits{Timers: 10, Backlog: 10})
		q.Serve("a", true, limit)
		q.Serve("b", true, limit)
		q.withPrefetch(0)
		owned := map[int64]*Item{}
		slots, survived := 0, 0
		draw := func() row.Due {
			return row.Due{
				ID: rapid.Int64Range(1, 20).Draw(t, "id"), Version: rapid.Int64Range(0, 3).Draw(t, "version"),
				Tag:        rapid.SampledFrom([]string{"a", "b"}).Draw(t, "tag"),
				Due:        row.Time(rapid.Int64Range(1, 5).Draw(t, "due")),
				CrashCount: rapid.IntRange(0, 3).Draw(t, "crashes"),
			}
		}
		any := func() *Item {
			if len(owned) == 0 {
				t.Skip("nothing is owned")
			}
			var ids []int64
			for id := range owned {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			return owned[rapid.SampledFrom(ids).Draw(t, "row")]
		}
		free := func(it *Item) {
			if it.claimed {
				slots--
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"arm": func(*rapid.T) { q.Arm(draw(), false) },
			"due": func(*rapid.T) { q.AddDue([]row.Due{draw()}, rapid.Bool().Draw(t, "backlog"), 1) },
			"fire": func(*rapid.T) {
				window := Window{Near: time.Microsecond, First: 3 * time.Microsecond, Last: 4 * time.Microsecond}
				now := row.Time(rapid.Int64Range(0, 5).Draw(t, "now"))
				q.Fire(now, window, func(e timer.Entry, _ string) bool { return e.Version%2 == 0 })
			},
			"pick": func(t *rapid.T) {
				var onProbation []*Item
				for _, it := range q.pickAny(rapid.IntRange(1, 5).Draw(t, "max"), 0) {
					if owned[it.ID] != nil {
						t.Fatalf("row %d was picked while it is owned", it.ID)
					}
					owned[it.ID] = it
					slots++
				}
				for _, it := range owned {
					if it.onProbation() {
						onProbation = append(onProbation, it)
					}
				}
				if len(onProbation) > 1 && (slices.ContainsFunc(onProbation, q.ready.probation.isSolo) ||
					len(onProbation) > min(1+survived, max(concurrency/probationLeaves, 1))) {
					t.Fatalf("%d on probation are owned: %v", len(onProbation), idsIn(onProbation))
				}
			},
			"yield": func(*rapid.T) { it := any(); free(it); q.Yield(it, Slot) },
			"ended": func(*rapid.T) { it := any(); free(it); q.Release(it, Ended); delete(owned, it.ID) },
			"proven": func(*rapid.T) {
				it := any()
				free(it)
				q.Release(it, Proven)
				delete(owned, it.ID)
				if it.onProbation() {
					survived++
				}
			},
			"unclaimed": func(*rapid.T) { it := any(); free(it); q.Release(it, Unclaimed); delete(owned, it.ID) },
			"close":     func(*rapid.T) { q.Serve("a", false, 0) },
			"open":      func(*rapid.T) { q.Serve("a", true, limit) },
			"rest":      func(*rapid.T) { q.claims.measure(time.Now()) },
			"want":      func(*rapid.T) { q.Pops.Want([]string{"a"}, 1); q.Pops.Want([]string{"a"}, -1) },
			"": func(t *rapid.T) {
				if q.claims.claimed != slots || slots > concurrency {
					t.Fatalf("%d of %d places are counted as taken, %d are", q.claims.claimed, concurrency, slots)
				}
				busy, ahead := map[string]int{}, map[string]int{}
				for id, it := range owned {
					if it.claimedAhead {
						ahead[it.tag.name]++
					}
					if it.claimed {
						busy[it.tag.name]++
					}
					_, armed := q.timers.Get(id)
					if !q.Owns(id) || armed || q.ready.waiting[id] != nil {
						t.Fatalf("row %d is owned and in another place too", id)
					}
				}
				for tag, n := range busy {
					if n > limit {
						t.Fatalf("%d slots of %s, its limit is %d", n, tag, limit)
					}
				}
				for _, tag := range q.tags.byName {
					if n := ahead[tag.name]; n != tag.claimedAhead || n > limit-keptFree(limit) {
						t.Fatalf("%d places of %s are taken ahead of time, want %d, at most %d", tag.claimedAhead,
							tag.name, n, limit)
					}
				}
				if n := ahead["a"] + ahead["b"]; n != q.claims.claimedAhead || n > concurrency-keptFree(concurrency) {
					t.Fatalf("%d places are taken ahead of time, %d are counted, there are %d", n,
						q.claims.claimedAhead, concurrency)
				}
				for id := range q.ready.waiting {
					if _, armed := q.timers.Get(id); armed {
						t.Fatalf("row %d is ready and has a timer", id)
					}
				}
				checkTags(t, q)
				if q.timers.Len() > 11 {
					t.Fatalf("%d timers, the cap is 10 and an eighth", q.timers.Len())
				}
			},
		})
	})
}

// TestWhatATagRunsInASecondIsNotForgotten has a tag that runs 200 tasks a second, and one that runs none.
func TestWhatATagRunsInASecondIsNotForgotten(t *testing.T) {
	q := queueFor(2, 2, "a", "b")
	q.AddDue(sightings("a", 1, 300), false, 0)
	q.AddDue(sightings("b", 301, 600), false, 0)
	q.tags.get("a").rate.expected = 200 * int(prefetchSpan) / int(time.Second)
	if !q.ready.age(ms(5000), 10) {
		t.Error("nothing was forgotten")
	}
	if quick, slow := len(q.tags.get("a").backlog), len(q.tags.get("b").backlog); quick != 200 || slow != 10 {
		t.Errorf("%d rows of the quick tag are kept and %d of the other, want 200 and 10", quick, slow)
	}
}

func TestOverdueRowsAreKeptInMemoryUpToABound(t *testing.T) {
	q := queueFor(1, 1, "a")
	q.limits.Backlog = 10
	q.AddDue(sightings("a", 1, 100), false, 0)
	running := q.pickAny(1, 0)
	if got := q.pickAny(1, ms(5000)); len(got) != 0 || len(q.ready.waiting) != 10 {
		t.Errorf("%d rows wait in memory beside %d that runs, want the bound of 10", len(q.ready.waiting), len(running))
	}
}
