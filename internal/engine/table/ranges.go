package table

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// Another transaction may have locked a range of an index: no row in it is locked, but a write that puts one there
// waits. InnoDB locks so what a statement has searched at REPEATABLE READ, its default. The server says only that the
// statement has waited. So the rows of a statement that has met such a lock are sent again by tag, and by key where
// keys must be unique. Until each part has had time to meet the lock, all tags travel apart. A part that waits is
// halved, and its tag stays apart from all others until no more locks are met. So do the tags next to it.

const (
	// apartFor is for how long a tag stays apart after its last lock. It is longer than the pause between two tries.
	apartFor = 10 * time.Second
	// apartSlow is how many parts are sent again at a time. Each may wait for a second. It leaves connections to the
	// first tries of others.
	apartSlow = 1
)

// ranges remembers the tags and keys of which another transaction may have locked a range.
type ranges struct {
	known atomic.Bool // not all that follows is empty
	slow  chan struct{}

	mu    sync.Mutex // guards what follows; innermost
	begun time.Time  // when a lock was met last of which the tag is not known
	doubt time.Time  // until then any tag may have met that lock
	of    map[string]*lockedRange
	seen  []string // the tags that were asked for, sorted

	unclear []time.Time // when locks were met of late while commits were slow
}

// lockedRange is what is known of one group of rows that has met a lock, or may.
type lockedRange struct {
	until time.Time // it stays apart until then
	met   bool      // a statement with no other rows has met the lock; of a tag, one without keys
}

func newRanges() ranges {
	return ranges{slow: make(chan struct{}, apartSlow), of: map[string]*lockedRange{}}
}

// MayWait notes that a statement with rows of the groups has met a lock, or is likely to.
func (r *ranges) MayWait(groups ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.begun = time.Now()
	r.doubt = r.begun.Add(LockWait)
	r.note(groups, r.doubt)
}

// MayWaitAlone notes the same of a statement that has travelled apart: rows without a group in common do not wait.
func (r *ranges) MayWaitAlone(groups ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.note(groups, time.Now().Add(LockWait))
	for _, g := range groups {
		if isTag(g) {
			r.get(g).until = time.Now().Add(apartFor)
		}
	}
}

// note sees the tags, and lets the keys travel apart until they have had time to meet the lock.
func (r *ranges) note(groups []string, until time.Time) {
	r.known.Store(true)
	for _, g := range groups {
		if isTag(g) {
			r.see(g)
		} else if r.of[g] == nil {
			r.get(g).until = until
		}
	}
}

// get returns what is known of a group, from now on something.
func (r *ranges) get(group string) *lockedRange {
	known := r.of[group]
	if known == nil {
		known = &lockedRange{}
		r.of[group] = known
	}
	return known
}

// Met notes that a statement with rows of the group alone, sent at that time, has met the lock. It reports whether that
// is news. What was sent at the same time has met it after twice the time.
func (r *ranges) Met(group string, sent time.Time) (news bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known.Store(true)
	now := time.Now()
	if told := now.Add(now.Sub(sent)); sent.After(r.begun) && told.Before(r.doubt) {
		r.doubt = told
	}
	if isTag(group) {
		r.see(group)
	}
	known := r.get(group)
	news = !known.met
	known.met, known.until = true, now.Add(apartFor)
	return news
}

// Passed notes that such a statement has met no lock. It clears a key that has met none by itself.
func (r *ranges) Passed(group string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.of[group]; known != nil && !known.met && !isTag(group) {
		delete(r.of, group)
	}
}

// Tags returns the tags of which a range is locked, sorted. Where only a key is, it is not among them.
func (r *ranges) Tags() (tags []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tidy(time.Now())
	for group, known := range r.of {
		if isTag(group) && known.met {
			tags = append(tags, group)
		}
	}
	slices.Sort(tags)
	return tags
}

// tidy forgets what is over.
func (r *ranges) tidy(now time.Time) {
	maps.DeleteFunc(r.of, func(_ string, known *lockedRange) bool { return now.After(known.until) })
	if len(r.of) == 0 && now.After(r.doubt) {
		r.known.Store(false)
		r.seen = nil
	}
}

// None reports whether no group is known.
func (r *ranges) None() bool { return !r.known.Load() }

// Has reports whether rows of the group are sent apart from others.
func (r *ranges) Has(group string) bool {
	if r.None() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	r.tidy(now)
	switch {
	case r.of[group] != nil:
		return true
	case !isTag(group) || r.None():
		return false
	}
	return r.isBeside(group) || now.Before(r.doubt)
}

// isBeside reports whether the tag is the next one to a tag that has met a lock. InnoDB lets a locked range grow: when
// the row at its end goes away, it reaches to the row after that. So the tag beside is the next one that waits.
func (r *ranges) isBeside(tag string) bool {
	at := r.see(tag)
	return slices.ContainsFunc(r.seen[max(at-1, 0):min(at+2, len(r.seen))], func(other string) bool {
		return r.of[other] != nil
	})
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
	if !t.mayBeRange() {
		return
	}
	for _, r := range rows {
		t.Ranges.MayWait(tag(r))
	}
}

// mayBeRange reports whether a lock which none of the rows has may be of a range. While commits are slow, the first few
// in unclearFor are taken for this process's own: its statements hold their rows for as long as a commit
// takes. If all tags then travelled apart, renewals would wait for connections until leases are over.
func (t *Table) mayBeRange() bool { return !t.Health.isSlow() || t.Ranges.again(time.Now()) }

const (
	unclearFor   = 3 * LockWait
	unclearLocks = 2
)

func (r *ranges) again(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unclear = slices.DeleteFunc(r.unclear, func(at time.Time) bool { return now.Sub(at) > unclearFor })
	r.unclear = append(r.unclear, now)
	return len(r.unclear) > unclearLocks
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

// TellRange notes, and logs once, that a statement with rows of the group alone, sent at that time, has met the lock.
func (t *Table) TellRange(group string, sent time.Time) {
	if t.Ranges.Met(group, sent) {
		tag, _, ofKey := strings.Cut(group, keySeparator)
		t.Log.Warn("another transaction has locked rows of a tag, or a range where they go: some of its tasks wait",
			"tag", tag, "unique_key", ofKey)
	}
}

const keySeparator = "\x00"

func isTag(group string) bool { return !strings.Contains(group, keySeparator) }

// KeyGroup names the rows that must not have the key at the same time.
func KeyGroup(k row.TagKey) string { return k.Tag + keySeparator + k.Key }
