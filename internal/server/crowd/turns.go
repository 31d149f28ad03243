package crowd

import "sync"

// Turns are what callers have under way at once. A caller gets as many as it leaves free at most: the first one half of
// all, the next one half of the rest. So none takes all, and who comes late finds some.
type Turns struct {
	most int64

	mu    sync.Mutex
	taken int64
	of    map[string]int64
}

// NewTurns returns so many Turns.
func NewTurns(most int64) *Turns { return &Turns{most: most, of: map[string]int64{}} }

// Take takes n turns for the caller until leave is called once, and reports whether the caller may have them.
func (t *Turns) Take(caller string, n int64) (leave func(), ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if free := t.most - t.taken - n; free < 0 || t.of[caller] > 0 && t.of[caller]+n > free {
		return nil, false
	}
	t.taken += n
	t.of[caller] += n
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.taken -= n
		if t.of[caller] -= n; t.of[caller] == 0 {
			delete(t.of, caller)
		}
	}, true
}
