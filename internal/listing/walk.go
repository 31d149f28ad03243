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
	newest bool        // all rows, the newest first; otherwise those of the spans
	below  int64       // with newest
	spans  []*track
	down   bool
}

// track is how far a walk is in one span.
type track struct {
	span  row.Span
	ahead []row.Place // read, and not handed out
	over  bool        // nothing comes behind them
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
		first, empty := w.first()
		switch {
		case len(empty) > 0:
			if err := w.fill(ctx, empty, n-len(places)); err != nil {
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

// first returns the track whose next place comes first, and those that have to be read on before that is known.
func (w *walk) first() (first *track, empty []*track) {
	for _, t := range w.spans {
		switch {
		case len(t.ahead) > 0:
			if first == nil || (t.ahead[0].Compare(first.ahead[0]) < 0) != w.down {
				first = t
			}
		case !t.over:
			empty = append(empty, t)
		}
	}
	return first, empty
}

func (w *walk) fill(ctx context.Context, tracks []*track, n int) error {
	n = min(n, max(leastAhead, skew*n/len(tracks)))
	spans := make([]row.Span, len(tracks))
	for i, t := range tracks {
		spans[i] = t.span
	}
	found, err := w.store.Places(ctx, spans, n)
	if err != nil {
		return err
	}
	for i, t := range tracks {
		t.ahead, t.over = found[i], len(found[i]) < n
		if !t.over {
			t.span.After = &found[i][n-1]
		}
	}
	return nil
}
