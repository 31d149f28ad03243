package listing

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// MostCounted is the largest number that Count and Counts return.
const MostCounted = 10_000

const (
	// mostCountedInAll is how many entries of the index Counts reads, about 60 ms.
	mostCountedInAll = 30_000
	// leastCounted is how far the rows of a pair are counted, however many pairs there are.
	leastCounted = 100
	// mostPairs is how many pairs Counts counts. A server enters the index for each, which takes it up to 0.5 ms.
	mostPairs = 1000
	// mostLookedAtInAll is how many rows Count looks at, and countTime for about how long.
	mostLookedAtInAll = 100_000
	countTime         = 100 * time.Millisecond
	// firstLooked is how many rows Count looks at first. Rows that a disk has take long, and the next step is larger.
	firstLooked = 100
)

// Count returns how many tasks match. When capped it is a lower bound: it is the largest number, or Count has looked at
// so many rows, or for so long, that it left the others.
func Count(ctx context.Context, s Store, q Query) (n int, capped bool, err error) {
	w, err := q.walk(ctx, s)
	if err != nil {
		return 0, false, err
	}
	pace := pace{size: firstLooked, left: mostLookedAtInAll, most: countTime}
	for {
		step := pace.next()
		if step == 0 {
			return n, true, nil
		}
		places, err := w.next(ctx, step)
		if err != nil {
			return n, true, err
		}
		matching := len(places)
		if q.looksAtRows() {
			size, err := q.match(ctx, w.store, places)
			if err != nil {
				return n, true, err
			}
			matching = len(size)
		}
		if n += matching; n > MostCounted {
			return MostCounted, true, nil
		}
		if len(places) < step {
			return n, false, nil
		}
	}
}

// looksAtRows reports whether the places alone do not tell what matches.
func (q *Query) looksAtRows() bool {
	return q.Order == NewestIDs || q.Key != "" || q.LateBy > 0 || q.Error != "" || q.Group != "" ||
		!q.CreatedBy.IsZero()
}

// TagCount is how many rows a tag has in one status.
type TagCount struct {
	row.TagCount
	Count  int64
	Capped bool // there may be more
}

// Counter is what [Counts] reads.
type Counter interface {
	Oldest(ctx context.Context, status row.Status) ([]row.TagCount, error)
	Count(ctx context.Context, pairs []row.Pair, most int) ([]int64, error)
}

// Counts counts the rows of every tag and of each of the statuses, each up to most, or less where there are many tags.
// Of very many it counts those whose oldest task is due first. The others have a row at least, which it says of them.
func Counts(ctx context.Context, s Counter, most int, of ...row.Status) ([]TagCount, error) {
	var counts []TagCount
	var pairs []row.Pair
	var counted []int // places of the pairs in counts
	for _, status := range of {
		oldest, err := s.Oldest(ctx, status)
		if err != nil {
			return nil, err
		}
		first := len(counts)
		for _, tag := range oldest {
			counts = append(counts, TagCount{TagCount: tag, Count: 1, Capped: true})
		}
		for _, i := range Foremost(oldest, mostPairs/len(of)) {
			counted, pairs = append(counted, first+i), append(pairs, row.Pair{Status: status, Tag: oldest[i].Tag})
		}
	}
	if len(pairs) == 0 {
		return nil, nil
	}
	most = min(most, max(leastCounted, mostCountedInAll/len(pairs)))
	found, err := s.Count(ctx, pairs, most+1)
	if err != nil {
		return nil, err
	}
	for i, n := range found {
		c := &counts[counted[i]]
		c.Count, c.Capped = min(n, int64(most)), n > int64(most)
	}
	return counts, nil
}

// Foremost returns the places of at most so many tags, in their order: those whose oldest task is due first.
func Foremost(tags []row.TagCount, most int) []int {
	places := make([]int, len(tags))
	for i := range places {
		places[i] = i
	}
	if len(places) <= most {
		return places
	}
	slices.SortFunc(places, func(a, b int) int {
		return cmp.Or(cmp.Compare(tags[a].Oldest, tags[b].Oldest), cmp.Compare(a, b))
	})
	places = places[:most]
	slices.Sort(places)
	return places
}

// LongestDue returns at most so many of the items, in their order, and how many it leaves out: those that have been due
// for longest stay, and those without a due time go first.
func LongestDue[T any](all []T, most int, due func(*T) time.Time) (first []T, left int) {
	if len(all) <= most {
		return all, 0
	}
	tags := make([]row.TagCount, len(all))
	for i := range all {
		if tags[i].Oldest = row.MaxTime; !due(&all[i]).IsZero() {
			tags[i].Oldest = row.At(due(&all[i]))
		}
	}
	for _, i := range Foremost(tags, most) {
		first = append(first, all[i])
	}
	return first, len(all) - most
}
