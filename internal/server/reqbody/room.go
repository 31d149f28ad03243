package reqbody

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Room is memory that requests share, in bytes. A caller gets a share of it at most. Who needs room takes it from the
// caller that holds most: a body that does not arrive, or an answer that is not read, is cut off.
type Room struct {
	most, share int64

	mu      sync.Mutex
	free    int64
	callers map[string]int64 // what each holds
	places  []*Place         // the oldest first
	waiting []*waiter        // the longest first
}

// Place is the part of a Room that a request holds.
type Place struct {
	room   *Room
	caller string
	bytes  int64
	since  time.Time
	cut    func() // nil: the request does not wait for its client
}

type waiter struct {
	place *Place
	in    chan struct{} // closed when the place is taken
}

const (
	// cutAfter is how long a request may wait for its client while another one needs its place.
	cutAfter = 2 * time.Second
	// lookEvery is how often a request that waits for room looks for a place to take.
	lookEvery = 100 * time.Millisecond
)

// NewRoom returns a Room of so many bytes, of which a caller gets the share at most.
func NewRoom(most, share int64) *Room {
	return &Room{most: most, share: share, free: most, callers: map[string]int64{}}
}

// Enter waits for a place of so many bytes, for as long as wait. What is larger than a caller's share takes all of
// that. It returns [NoRoom] when there was no place in time. cut ends the connection of a request while that waits for
// its client; nil for a request that does not.
func (r *Room) Enter(ctx context.Context, caller string, bytes int64, wait time.Duration, cut func()) (*Place, error) {
	w := &waiter{
		place: &Place{room: r, caller: caller, bytes: min(bytes, r.share), cut: cut}, in: make(chan struct{}),
	}
	r.mu.Lock()
	r.waiting = append(r.waiting, w)
	r.admit()
	r.mu.Unlock()
	over := time.NewTimer(wait)
	defer over.Stop()
	for {
		look := time.NewTimer(lookEvery)
		select {
		case <-w.in:
			look.Stop()
			return w.place, nil
		case <-look.C:
			r.cutOldest(w.place)
			continue
		case <-over.C:
		case <-ctx.Done():
		}
		look.Stop()
		return r.giveUp(w)
	}
}

// giveUp takes a waiter out, unless it has got its place meanwhile.
func (r *Room) giveUp(w *waiter) (*Place, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.waiting, w) {
		return w.place, nil
	}
	r.waiting = slices.DeleteFunc(r.waiting, func(other *waiter) bool { return other == w })
	r.admit()
	return nil, NoRoom
}

// Open returns a place that holds nothing yet, and can [Place.Grow].
func (r *Room) Open(caller string) *Place {
	p := &Place{room: r, caller: caller}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.take(p)
	return p
}

// Free returns how many bytes no request holds.
func (r *Room) Free() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.free
}

// admit gives places to those that wait, to the first of each caller before the second of any. A caller that holds its
// share delays no other. r.mu is held.
func (r *Room) admit() {
	turns, turn := map[string]int{}, make(map[*waiter]int, len(r.waiting))
	for _, w := range r.waiting {
		turn[w] = turns[w.place.caller]
		turns[w.place.caller]++
	}
	order := slices.Clone(r.waiting)
	slices.SortStableFunc(order, func(a, b *waiter) int { return turn[a] - turn[b] })
	blocked := map[string]bool{}
	for _, w := range order {
		switch {
		case blocked[w.place.caller]:
		case !r.within(w.place):
			blocked[w.place.caller] = true
		case w.place.bytes > r.free:
			return
		default:
			r.take(w.place)
			r.waiting = slices.DeleteFunc(r.waiting, func(other *waiter) bool { return other == w })
			close(w.in)
		}
	}
}

func (r *Room) within(p *Place) bool { return r.callers[p.caller]+p.bytes <= r.share }

func (r *Room) take(p *Place) {
	p.since = time.Now()
	r.free -= p.bytes
	r.callers[p.caller] += p.bytes
	r.places = append(r.places, p)
}

// cutOldest cuts off the oldest request that waits for its client. It is the caller's own where that is over its share,
// and otherwise of the caller that holds most.
func (r *Room) cutOldest(asks *Place) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cutFor(asks, asks.bytes)
}

func (r *Room) cutFor(asks *Place, bytes int64) {
	own := r.callers[asks.caller]+bytes > r.share
	var found *Place
	for _, p := range r.places {
		if p.cut == nil || time.Since(p.since) < cutAfter || own && p.caller != asks.caller {
			continue
		}
		if found == nil || r.callers[p.caller] > r.callers[found.caller] {
			found = p
		}
	}
	if found != nil {
		found.cut()
		found.cut = nil
	}
}

// Waits says that the request waits for its client from now on, and how it is cut off; nil: that it does not.
func (p *Place) Waits(cut func()) {
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	p.cut, p.since = cut, time.Now()
}

// Keep returns what is more than so many bytes.
func (p *Place) Keep(bytes int64) {
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	p.give(p.bytes - bytes)
}

// Grow takes so many bytes more if they are there now. Otherwise it cuts off a request that waits for its client.
func (p *Place) Grow(bytes int64) bool {
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	r := p.room
	if bytes > r.free || r.callers[p.caller]+bytes > r.share {
		r.cutFor(p, bytes)
		return false
	}
	r.free -= bytes
	r.callers[p.caller] += bytes
	p.bytes += bytes
	return true
}

// Caller names who holds the place.
func (p *Place) Caller() string { return p.caller }

// Leave returns the place.
func (p *Place) Leave() {
	p.room.mu.Lock()
	defer p.room.mu.Unlock()
	p.cut = nil
	p.room.places = slices.DeleteFunc(p.room.places, func(other *Place) bool { return other == p })
	p.give(p.bytes)
}

func (p *Place) give(bytes int64) {
	if bytes <= 0 {
		p.room.admit()
		return
	}
	r := p.room
	r.free += bytes
	p.bytes -= bytes
	if r.callers[p.caller] -= bytes; r.callers[p.caller] <= 0 {
		delete(r.callers, p.caller)
	}
	r.admit()
}
