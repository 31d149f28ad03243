package listing

import (
	"context"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// walk hands out the places of a list in its order. It reads ahead of what it has handed out, in every span, so that
// many tags cost little more than one.
type walk struct {
	store  store.Lister
	ahead  []row.Place // come before all others
	newest bool        // all rows, the newest first; otherwise the rows of the spans
	below  int64       // with newest
	spans  []*track
	down   bool
}

// track is how far a walk is in one span.
type track struct {
	span  row.Span
	ahead []row.Place // read, and not handed out
	over  bool        // nothing comes behind them
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

// first returns the track whose next place comes first, or nil. It is not known while a span has to be read on.
func (w *walk) first() (first *track, known bool) {
	for _, t := range w.spans {
		switch {
		case len(t.ahead) > 0:
			if first == nil || (t.ahead[0].Compare(first.ahead[0]) < 0) != w.down {
				first = t
			}
		case !t.over:
			return nil, false
		}
	}
	return first, true
}

// fill reads on in the spans that have nothing left, and in those that soon will.
func (w *walk) fill(ctx context.Context, n int) error {
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
