package fault

import (
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/test/chaos/evidence"
	"github.com/delaytask/delaytask/test/chaos/proxy"
	"github.com/delaytask/delaytask/test/chaos/role"
)

const (
	second = time.Second
	ttr    = role.TTR
)

var (
	killed, rejoins = (*dbtest.Cluster).Kill, (*dbtest.Cluster).Rejoin
	frozen, thawed  = (*dbtest.Cluster).Freeze, (*dbtest.Cluster).Thaw
)

// Kinds are all kinds of faults. A Begin that needs what the machine does not have returns [ErrNothing].
var Kinds = slices.Concat(
	in(Processes, []Kind{
		{Name: "kill worker", Weight: 12, Begin: on(role.Worker, kill), Kills: true, Shows: evidence.Interrupted},
		{Name: "kill saver", Weight: 3, Begin: on(role.Saver, kill), Kills: true, Shows: evidence.Interrupted},
		{Name: "stop worker", Weight: 2, Begin: on(role.Worker, stop), Shows: evidence.Busy},
		{
			Name: "freeze worker", Weight: 1, Lasts: between(2*ttr, 3*ttr),
			Begin: on(role.Worker, freeze), Shows: evidence.Busy,
		},
		{
			Name: "no processor time", Weight: 1, Lasts: between(ttr, 3*ttr),
			Begin: on(role.Worker, starve), Shows: evidence.Busy,
		},
		{Name: "out of memory", Weight: 2, Begin: on(role.Worker, noMemory), Kills: true, Shows: evidence.Interrupted},
		{
			Name: "out of file descriptors", Weight: 1, Lasts: between(1*second, 2*ttr),
			Begin: on(role.Worker, noFiles), Shows: evidence.Busy,
		},
		{
			Name: "thousands due at once", Weight: 1, Lasts: between(5*second, 6*second),
			Begin: on(role.Saver, burst), Shows: evidence.MostChanged,
		},
	}),
	[]Kind{ // The crashes that tasks ask for: the processes note them themselves.
		{Name: role.KillAfterClaim, Shows: evidence.Interrupted},
		{Name: role.KillBeforeSettle, Shows: evidence.Changed},
		{Name: role.KillAfterReturn, Shows: evidence.Changed},
	},
	in(Statements, []Kind{
		lost(proxy.Insert, proxy.Reply, 6), lost(proxy.Claim, proxy.Reply, 4), lost(proxy.Settle, proxy.Reply, 4),
		lost(proxy.Commit, proxy.Reply, 2), lost(proxy.Insert, proxy.Request, 1), lost(proxy.Claim, proxy.Request, 1),
		lost(proxy.Settle, proxy.Request, 1), lost(proxy.Commit, proxy.Request, 1),
		{Name: "reset connections", Weight: 1, Begin: reset, Shows: evidence.Busy},
		{Name: "kill busy connections", Weight: 1, Begin: killAll(true), Shows: evidence.AnyBusy},
	}),
	in(Networks, []Kind{
		{
			Name: "partition of a worker", Weight: 4, Lasts: between(ttr/2, 3*ttr),
			Begin: on(role.Worker, cut), Shows: evidence.Busy,
		},
		{
			Name: "partition that heals as the lease ends", Weight: 4, Lasts: between(ttr*8/10, ttr*13/10),
			Begin: on(role.Worker, cut), Shows: evidence.Busy,
		},
		{
			Name: "slow network", Weight: 1, Lasts: between(2*second, 5*second),
			Begin: bad(proxy.Latency(50*time.Millisecond, 500*time.Millisecond)), Shows: evidence.Busy,
		},
		{
			Name: "narrow network", Weight: 1, Lasts: between(2*second, 5*second),
			Begin: bad(proxy.Bandwidth(10)), Shows: evidence.Busy,
		},
		{
			Name: "sliced packets", Weight: 1, Lasts: between(2*second, 5*second), Shows: evidence.Busy,
			Begin: bad(proxy.Latency(0, 2*time.Millisecond), proxy.Slices(7, 100*time.Microsecond)),
		},
		{Name: "torn connections", Weight: 1, Lasts: between(1*second, 4*second), Begin: torn, Shows: evidence.Busy},
	}),
	in(Databases, []Kind{
		{Name: "20 workers join and leave", Weight: 1, Lasts: between(3*second, 6*second), Begin: crowd},
		{Name: "kill database", On: OneServer, Weight: 16, Lasts: between(0, 3*second), Begin: crash},
		{Name: "database hangs", On: OneServer, Weight: 2, Lasts: between(1*second, 12*second), Begin: hang},
		{Name: "member killed", On: Members, Weight: 8, Lasts: between(0, 5*second), Begin: onMember(killed, rejoins)},
		{
			Name: "member frozen", On: Members, Weight: 3, Lasts: between(1*second, 20*second),
			Begin: onMember(frozen, thawed),
		},
		{Name: "database out of reach", Weight: 1, Lasts: between(2*second, 12*second), Begin: away},
		{Name: "freeze all workers", Weight: 1, Lasts: between(2*ttr, 3*ttr), Begin: freezeAll},
		{Name: "read-only database", Weight: 2, Lasts: between(1*second, 5*second), Begin: readOnly},
		{Name: "too many connections", Weight: 2, Lasts: between(2*second, 6*second), Begin: few},
		{Name: "kill all connections", Weight: 2, Begin: killAll(false)},
		{Name: "locked rows", Weight: 2, Lasts: between(2*second, 8*second), Begin: lockSome, Shows: evidence.Changed},
		{
			Name: "deadlocks", Weight: 2, Lasts: between(2*second, 6*second),
			Begin: lockConflicts, Shows: evidence.Changed,
		},
		{Name: "long snapshot", Weight: 1, Lasts: between(5*second, 20*second), Begin: snapshot},
		{Name: "alter table", On: OneServer, Weight: 2, Lasts: between(0, 2*second), Begin: alter},
		{Name: "rows changed by hand", Weight: 2, Begin: byHand, Shows: evidence.Changed},
		{Name: "full disk", On: OneServer, Weight: 2, Lasts: between(4*second, 12*second), Begin: fullDisk},
	}),
)

// Killers returns the names of those that end a process.
func Killers() (names []string) {
	for _, k := range Kinds {
		if k.Kills {
			names = append(names, k.Name)
		}
	}
	return names
}

// in puts kinds into a lane. Those of the database show by a busy process, unless they say otherwise.
func in(lane Lane, kinds []Kind) []Kind {
	for i := range kinds {
		kinds[i].Lane = lane
		if kinds[i].Shows == nil && lane == Databases {
			kinds[i].Shows = evidence.AnyBusy
		}
	}
	return kinds
}

func lost(kind proxy.Kind, what proxy.Loss, weight int) Kind {
	k := Kind{Weight: weight, Begin: loss(kind, what), Shows: evidence.Changed}
	k.Name = "lost reply to " + string(kind)
	if what == proxy.Request {
		k.Name = "lost " + string(kind)
	}
	if what == proxy.Request && kind == proxy.Commit {
		k.Shows = evidence.Answered // for nothing was written
	}
	return k
}

func between(least, most time.Duration) [2]time.Duration { return [2]time.Duration{least, most} }
