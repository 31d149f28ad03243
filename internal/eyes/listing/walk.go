package listing

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// walk hands out the places of a list in its order. It reads ahead of what it has handed out, in every span that has
// begun, so that many tags cost little more than one. A span begins when its first place may be the next.
type walk struct {
	store  store.Lister
	ahead  []row.Place // come before all others
	newest bool        // all rows, the newest first; otherwise the rows of the spans
	below  int64       // with newest
	spans  []*track
	later  []*track // have not begun, in the order of their first places
	down   bool
}

// track is how far a walk is in one span.
type track struct {
	span  row.Span
	first row.Place   // no place comes before it
	ahead []row.Place // read, and not handed out
	over  bool        // nothing comes behind them
	exact bool        // first is its first place, not only the due time of that
	size  int         // of the next read: twice the last one's, because a span that is read again has more
}

const (
	// leastAhead is what a walk reads ahead at least of each of many spans.
	leastAhead = 8
	// skew is by how much one span may have more of the next places than another before it is read again.
	skew = 4
)

// next returns up to n places. Fewer are the last ones.
func (w *walk) next(ctx context.Context, n int) (places []row.Place, err error) {
	places, w.ahead = w.ahead[:min(n, len(w.ahead))], w.ahead[min(n, len(w.ahead)):]
	if w.newest {
		ids, err := w.store.Newest(ctx, w.below, n-len(places))
		for _, id := range ids {
			places, w.below = append(places, row.Place{ID: id}), id
		}
		return places, err
	}
	for len(places) < n {
		first, known := w.first()
		switch {
		case !known:
			if err := w.fill(ctx, n-len(places)); err != nil {
				return nil, err
			}
		case first == nil:
			return places, nil
		default:
			places, first.ahead = append(places, first.ahead[0]), first.ahead[1:]
		}
	}
	return places, nil
}

// first returns the track whose next place comes first, or nil. It is not known while a span has to be read on, or has
// to begin.
func (w *walk) first() (first *track, known bool) {
	for _, t := range w.spans {
		switch {
		case len(t.ahead) > 0:
			if first == nil || w.before(t.ahead[0], first.ahead[0]) {
				first = t
			}
		case !t.over:
			return nil, false
		}
	}
	return first, !w.begins(first)
}

func (w *walk) before(a, b row.Place) bool { return a != b && (a.Compare(b) < 0) != w.down }

// begins reports whether a span has to begin before the next place is known to be the first of that track.
func (w *walk) begins(first *track) bool {
	return len(w.later) > 0 && (first == nil || !w.before(first.ahead[0], w.later[0].first))
}

// findTags adds the tags that have rows in the span.
func (w *walk) findTags(ctx context.Context, span row.Span) error {
	tags, err := w.store.FirstDue(ctx, span)
	for _, of := range tags {
		span.Tag = of.Tag
		w.later = append(w.later, &track{span: span, first: w.atDue(of.Oldest)})
	}
	w.sortLater()
	return err
}

// atDue returns a place before which the rows with the due time do not come.
func (w *walk) atDue(due row.Time) row.Place {
	if w.down {
		return row.Place{Due: due, ID: math.MaxInt64}
	}
	return row.Place{Due: due}
}

func (w *walk) sortLater() {
	slices.SortFunc(w.later, func(a, b *track) int {
		if w.down {
			a, b = b, a
		}
		return cmp.Or(a.first.Compare(b.first), cmp.Compare(a.span.Tag, b.span.Tag))
	})
}

// part finds the first places of the spans that are to begin with the next n, where more than these have the same due
// time. All would have to begin otherwise: thousands, where the tasks of as many tags are due at midnight.
func (w *walk) part(ctx context.Context, n int) error {
	for n > 0 && len(w.later) > n {
		at := w.later[n]
		if due := at.first.Due; at.exact || w.later[n-1].first.Due != due {
			return nil
		} else if err := w.partAt(ctx, at.span, due); err != nil {
			return err
		}
	}
	return nil
}

// partAt finds the first places of the spans of a status that begin at the due time. Those without any begin later.
func (w *walk) partAt(ctx context.Context, span row.Span, due row.Time) error {
	ids, err := w.store.FirstIDs(ctx, span, due)
	if err != nil {
		return err
	}
	missing := false
	for _, t := range w.later {
		if t.first.Due != due || t.span.Status != span.Status {
			continue
		}
		if id, isThere := ids[t.span.Tag]; isThere {
			t.first, t.exact = row.Place{Due: due, ID: id}, true
		} else {
			missing = true
		}
	}
	next := map[string]row.Time{}
	if missing && (!w.down || !due.IsZero()) { // downwards those without a due time are the last
		after := w.atDue(max(due+1, row.MinTime))
		if w.down {
			after = w.atDue(due - 1)
		}
		span.After = &after
		tags, err := w.store.FirstDue(ctx, span)
		if err != nil {
			return err
		}
		for _, of := range tags {
			next[of.Tag] = of.Oldest
		}
	}
	w.later = slices.DeleteFunc(w.later, func(t *track) bool {
		if t.first.Due != due || t.span.Status != span.Status || t.exact {
			return false
		}
		at, follows := next[t.span.Tag]
		t.first = w.atDue(at)
		return !follows
	})
	w.sortLater()
	return nil
}

// fill reads on in the spans that have nothing left, and in those that soon will. The next n places are in the spans
// that have begun, and in the n that begin next.
func (w *walk) fill(ctx context.Context, n int) error {
	if err := w.part(ctx, n); err != nil {
		return err
	}
	begin := min(n, len(w.later))
	w.spans, w.later = append(w.spans, w.later[:begin]...), w.later[begin:]
	var tracks []*track
	var spans []row.Span
	size := 0
	for _, t := range w.spans {
		if t.size == 0 {
			t.size = min(n, max(leastAhead, skew*n/len(w.spans)))
		}
		if !t.over && len(t.ahead) <= t.size/skew {
			tracks, spans, size = append(tracks, t), append(spans, t.span), max(size, t.size)
		}
	}
	found, err := w.store.Places(ctx, spans, size)
	if err != nil {
		return err
	}
	for i, t := range tracks {
		t.ahead, t.over, t.size = append(t.ahead, found[i]...), len(found[i]) < size, min(2*size, mostMatched)
		if !t.over {
			t.span.After = &found[i][size-1]
		}
	}
	return nil
}
