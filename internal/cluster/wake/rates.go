package wake

import (
	"maps"
	"net/netip"
	"sync"
	"time"
)

// rates bounds the datagrams to the processes of a host that have not acknowledged one: to all of them together as to
// one. Rows of nodes that do not exist may name the address of a host that has nothing to do with this.
type rates struct {
	mu   sync.Mutex
	next map[netip.Addr]time.Time // when a datagram may be sent there
}

// turn returns in how long the caller may send a datagram to the host. Others wait until after that.
func (r *rates) turn(to netip.Addr) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	if len(r.next) > mostSenders {
		maps.DeleteFunc(r.next, func(_ netip.Addr, next time.Time) bool { return !next.After(now) })
	}
	if r.next == nil {
		r.next = map[netip.Addr]time.Time{}
	}
	at := r.next[to]
	if at.Before(now) {
		at = now
	}
	r.next[to] = at.Add(pause)
	return at.Sub(now)
}

// free reports whether a datagram may be sent to the host now, and then takes the turn.
func (r *rates) free(to netip.Addr) bool {
	r.mu.Lock()
	taken := r.next[to].After(time.Now())
	r.mu.Unlock()
	return !taken && r.turn(to) == 0
}
