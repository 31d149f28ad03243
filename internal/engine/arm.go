package engine

import (
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/row"
)

// armer decides whether this process arms a row. Of all live nodes that serve the tag exactly one arms a new row;
// overlap is harmless, a gap would be late.
type armer struct {
	*core
	tags   *tags
	shares atomic.Pointer[shares] // nil until the first look at the nodes
}

// shares is who arms what, as this process sees it. The nodes look one after the other, and for a moment one of them
// has given away what the next does not know it has got. So each keeps for a while what was its own before.
type shares struct {
	view   *cluster.View
	first  bool // it is the first look: who died a moment ago still counts as alive
	peers  int
	before *cluster.View // nil after a while
	until  time.Time     // when that counts no more
}

// look takes a new look at the nodes over.
func (a *armer) look(view *cluster.View) {
	now := time.Now()
	next := &shares{view: view, peers: min(view.Peers(), maxPaceFactor)}
	switch s := a.shares.Load(); {
	case s == nil:
		next.first = true
	case !s.view.Same(view):
		next.before, next.until = s.view, now.Add(a.cfg.shortTerm())
	case now.Before(s.until):
		next.before, next.until = s.before, s.until
	}
	a.shares.Store(next)
	a.runqueue.SetPeers(next.peers)
}

// written arms rows that this process has just saved or put back to pending, as far as they are due within the horizon.
// It arms what is due soon whatever the shares say: the look-ahead of another node might come too late, and a tag that
// has just got its first taker here is known to no node yet.
func (a *armer) written(rows ...row.Due) {
	now := a.now()
	soon, limit := now.Add(a.cfg.shortTerm()), now.Add(a.cfg.Horizon)
	for _, d := range rows {
		switch {
		case d.Due <= soon:
			if a.tags.open(d.Tag) {
				a.runqueue.Arm(d, true)
			}
		case d.Due <= limit && a.mine(d.ID, d.Due, d.Tag):
			a.runqueue.Arm(d, false)
		}
	}
}

// mine reports whether this process arms the row. It does when it is the only one that serves the tag and has not
// announced that yet.
func (a *armer) mine(id int64, due row.Time, tag string) bool {
	s := a.shares.Load()
	return s != nil && a.tags.open(tag) &&
		(s.view.Mine(id, due, tag) || s.before != nil && s.before.Mine(id, due, tag) || !s.view.Served(tag))
}

// shared reports whether an overdue row is of this node's share, whoever saved it. Up to the second look at the nodes
// all are: a start catches up at once, whoever has died before, and claims that are in vain bring the second look.
func (a *armer) shared(id int64, tag string) bool {
	if a.unassigned() {
		return true
	}
	view := a.shares.Load().view
	return view.Assigned(id, tag) || !view.Served(tag)
}

// unassigned reports whether that is so yet.
func (a *armer) unassigned() bool {
	s := a.shares.Load()
	return s == nil || s.first
}

// Nodes on one database divide its tasks, and each would send its statements at a pace of its own: n nodes n times as
// many as one, with an n-th of the rows in each. A statement costs the server more than a row, so n nodes claim and
// settle at an n-th of the pace, and together about as many times as one would.

// maxPaceFactor bounds how much slower that is.
const maxPaceFactor = 5

// company is how many nodes share the work, this one among them, as far as that slows it down.
func (a *armer) paceFactor() int {
	if s := a.shares.Load(); s != nil {
		return s.peers
	}
	return 1
}
