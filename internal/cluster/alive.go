package cluster

import (
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// IsAlive reports whether a node's heartbeat is fresh. One that is ahead of the clock by as much is not: a process
// writes the clock's time each second, so it has written none since the clock was set back.
func IsAlive(n row.Node, now row.Time) bool { return isFresh(n, now, LeaseTime) }

func isFresh(n row.Node, now row.Time, within time.Duration) bool {
	return now.Sub(n.Heartbeat) <= within && n.Heartbeat.Sub(now) <= within
}

// leaseSlack is more than the claim-ahead window and what clocks of one cluster differ by.
const leaseSlack = 30 * time.Second

// IsAhead reports whether a lease ends later than its TTR allows, and its process is gone: the clock was set back
// since the claim. Nothing rescues the task until then.
func IsAhead(executor row.Executor, due row.Time, ttr time.Duration, nodes []row.Node, now row.Time) bool {
	if executor == (row.Executor{}) || ttr <= 0 || due.Sub(now) <= ttr+leaseSlack {
		return false
	}
	return !slices.ContainsFunc(nodes, func(n row.Node) bool { return n.Token == executor.Token() && IsAlive(n, now) })
}
