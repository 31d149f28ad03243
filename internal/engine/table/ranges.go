package table

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// Another transaction may have locked a range of an index: no row in it is locked, but a write that puts one there
// waits. InnoDB locks so what a statement has searched at REPEATABLE READ, its default. The server says only that the
// statement has waited. So a statement that has met such a lock is sent again in parts, each with the rows of one tag,
// or of one key where keys must be unique. A part that waits again is halved, and its tag stays apart from all others
// until no more locks are met. So do the tags next to it.

const (
	// apartFor is for how long a tag stays apart after its last lock. It is longer than the pause between two tries.
	apartFor = 10 * time.Second
	// apartDoubt is for how long after the first lock each tag is sent apart once: a range may reach into two tags.
	apartDoubt = 2 * time.Second
	// apartSlow is how many parts are sent again at a time. Each may wait for a second. It leaves connections to the
	// first tries of others.
	apartSlow = 1
)

// ranges remembers the tags and keys of which another transaction may have locked a range.
type ranges struct {
	known atomic.Int64 // len(of), as a rule 0
	slow  chan struct{}

	mu    sync.Mutex // guards what follows; innermost
	of    map[string]*lockedRange
	seen  []string        // the tags that were asked for since the first group is known, sorted
	doubt time.Time       // until then any tag may be locked that is not free
	free  map[string]bool // tags of which a statement has passed since the doubt began
}

// lockedRange is what is known of one group of rows: a tag, or a key.
type lockedRange struct {
	until time.Time // it stays apart until then
	met   bool      // a statement with no other rows has met the lock
}

func newRanges() ranges {
	return ranges{slow: make(chan struct{}, apartSlow), of: map[string]*lockedRange{}}
}

// MayWait notes that a statement with rows of the groups has met a lock.
func (r *ranges) MayWait(groups ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	until := now.Add(apartFor)
	if len(r.of) == 0 {
		r.doubt, r.free, r.seen = now.Add(apartDoubt), map[string]bool{}, nil
	}
	for _, g := range groups {
		if isTag(g) {
			r.see(g)
		}
		if r.of[g] == nil {
			r.of[g] = &lockedRange{}
			r.known.Add(1)
		}
		r.of[g].until = until
	}
}

// Met notes that a statement with rows of the group alone has met the lock. It reports whether that is news.
func (r *ranges) Met(group string) (news bool) {
	r.MayWait(group)
	r.mu.Lock()
	defer r.mu.Unlock()
	news = !r.of[group].met
	r.of[group].met = true
	return news
}

// Passed notes that such a statement has met no lock. It clears a group that has not met the lock by itself.
func (r *ranges) Passed(group string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.of[group]; known != nil && !known.met {
		r.forget(group)
	}
	if time.Now().Before(r.doubt) {
		r.free[group] = true
	}
}

func (r *ranges) forget(group string) {
	delete(r.of, group)
	r.known.Add(-1)
}

// Tags returns the tags of which a range is locked, sorted. Where only a key is, it is not among them.
func (r *ranges) Tags() (tags []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for group, known := range r.of {
		if known.met && now.Before(known.until) && isTag(group) {
			tags = append(tags, group)
		}
	}
	slices.Sort(tags)
	return tags
}

// None reports whether no group is known.
func (r *ranges) None() bool { return r.known.Load() == 0 }

// Has reports whether rows of the group are sent apart from others.
func (r *ranges) Has(group string) bool {
	if r.None() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, now := r.of[group], time.Now()
	if known != nil && now.After(known.until) {
		r.forget(group)
		known = nil
	}
	if known != nil || !isTag(group) {
		return known != nil
	}
	return now.Before(r.doubt) && !r.free[group] || r.isBeside(group, now)
}

// isBeside reports whether the tag is the next one to a tag that has met a lock. InnoDB lets a locked range grow: when
// the row at its end goes away, it reaches to the row after that. So the tag beside is the next one that waits.
func (r *ranges) isBeside(tag string, now time.Time) bool {
	at := r.see(tag)
	for _, other := range r.seen[max(at-1, 0):min(at+2, len(r.seen))] {
		if known := r.of[other]; known != nil && known.met && now.Before(known.until) {
			return true
		}
	}
	return false
}

// see returns the tag's place among those that were asked for.
func (r *ranges) see(tag string) int {
	at, known := slices.BinarySearch(r.seen, tag)
	if !known {
		r.seen = slices.Insert(r.seen, at, tag)
	}
	return at
}

// first returns the first of the groups that is sent apart, or "" for none.
func (r *ranges) first(groups []string) string {
	for _, g := range groups {
		if r.Has(g) {
			return g
		}
	}
	return ""
}

// MayWait notes that a statement has met a lock which none of its rows has.
func MayWait[T any](t *Table, rows []T, tag func(T) string) {
	for _, r := range rows {
		t.Ranges.MayWait(tag(r))
	}
}

// ByTag parts rows by their tags.
func ByTag[T any](rows []T, tag func(T) string) (parts [][]T) {
	places := map[string]int{}
	for _, r := range rows {
		of := tag(r)
		place, known := places[of]
		if !known {
			place = len(parts)
			places[of] = place
			parts = append(parts, nil)
		}
		parts[place] = append(parts[place], r)
	}
	return parts
}

// SplitApart parts rows by whether their tags are sent apart from others.
func SplitApart[T any](t *Table, rows []T, tag func(T) string) (apart map[string][]T, rest []T) {
	if t.Ranges.None() {
		return nil, rows
	}
	apart = map[string][]T{}
	for _, r := range rows {
		if of := tag(r); t.Ranges.Has(of) {
			apart[of] = append(apart[of], r)
		} else {
			rest = append(rest, r)
		}
	}
	return apart, rest
}

// TellRange notes, and logs once, that a statement with rows of the group alone has met the lock.
func (t *Table) TellRange(group string) {
	if t.Ranges.Met(group) {
		tag, _, ofKey := strings.Cut(group, keySeparator)
		t.Log.Warn("another transaction has locked rows of a tag, or a range where they go: some of its tasks wait",
			"tag", tag, "unique_key", ofKey)
	}
}

const keySeparator = "\x00"

func isTag(group string) bool { return !strings.Contains(group, keySeparator) }

// KeyGroup names the rows that must not have the key at the same time.
func KeyGroup(k row.TagKey) string { return k.Tag + keySeparator + k.Key }
