package engine

import (
	"context"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
)

// markNode marks what this node has done.
func (e *Engine) markNode(kind row.MarkKind) {
	if now := e.now(); !now.IsZero() {
		e.rollup.Mark(now, "", e.census.token, row.Mark{Kind: kind, Name: e.census.name})
	}
}

// tellOfStart writes the mark of the start, once this has done what is urgent: a node that soon crashes again should
// show.
func (e *Engine) tellOfStart(ctx context.Context) {
	if lifecycle.Sleep(ctx, lifecycle.Jitter(time.Second, 0.5)) {
		e.rollup.Write(ctx)
	}
}

// markPause marks that a tag was paused or resumed through this process, and by whom.
func (t *tags) markPause(ctx context.Context, tag string, paused bool) {
	mark := row.Mark{Kind: row.MarkResumed, Name: row.Actor(ctx)}
	if paused {
		mark.Kind = row.MarkPaused
	}
	if now := t.now(); !now.IsZero() {
		t.rollup.Mark(now, tag, t.rollup.Node, mark)
	}
}

// answering notices that another server of the database answers. Behind some proxies several answer in turn: these are
// known after a reading of each.
type answering struct {
	mu      sync.Mutex // innermost
	last    string
	servers map[string]time.Time // when each has answered last
}

// forgetServer is how long a server has not answered when its next answer is a failover.
const forgetServer = time.Minute

// another notes an answer, and reports whether it is that of a server which did not answer lately, after another one.
func (a *answering) another(server string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.servers == nil {
		a.last, a.servers = server, map[string]time.Time{}
	}
	other := server != a.last && now.Sub(a.servers[server]) > forgetServer
	a.last, a.servers[server] = server, now
	return other
}

// silences notices nodes that fall silent without having left.
type silences struct{ seen map[string]bool } // by token: the nodes that live, serve tags and do not leave

// lostAfter is the age of a heartbeat from which on its node counts as dead.
const lostAfter = 5 * time.Second

// look returns the nodes that have fallen silent since they were seen.
func (s *silences) look(c *count) (lost []row.Node) {
	seen := map[string]bool{}
	for _, n := range c.living {
		seen[n.Token] = len(n.Tags) > 0 && !n.Leaving
	}
	for _, n := range c.silent {
		if s.seen[n.Token] && c.time.Sub(n.Heartbeat) > lostAfter {
			lost = append(lost, n)
			continue
		}
		seen[n.Token] = s.seen[n.Token]
	}
	s.seen = seen
	return lost
}

// markLost marks nodes that have fallen silent. Each node marks all of them, by the same key. After an outage of the
// database all are silent for a moment.
func (l *lookahead) markLost(c *count) {
	if l.outage.holds(time.Now()) {
		return
	}
	for _, n := range l.silences.look(c) {
		l.rollup.Mark(n.Heartbeat, "", n.Token, row.Mark{Kind: row.MarkLost, Name: n.Name})
	}
}
