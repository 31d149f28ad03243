package fault

import (
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/test/system/chaos/evidence"
	"github.com/delaytask/delaytask/test/system/chaos/proxy"
	"github.com/delaytask/delaytask/test/system/chaos/role"
)

const (
	ms  = time.Millisecond
	sec = time.Second
	ttr = role.TTR
)

var (
	killed, rejoins = (*dbtest.Cluster).Kill, (*dbtest.Cluster).Rejoin
	frozen, thawed  = (*dbtest.Cluster).Freeze, (*dbtest.Cluster).Thaw
)

// Kinds are all kinds of faults. A Begin that needs what the machine does not have returns [ErrNothing].
var Kinds = slices.Concat(
	in(Processes, evidence.Busy, []Kind{
		{Name: "kill worker", Weight: 12, Begin: on(role.Worker, kill), Kills: true, Shows: evidence.Interrupted},
		{Name: "kill saver", Weight: 3, Begin: on(role.Saver, kill), Kills: true, Shows: evidence.Interrupted},
		{Name: "stop worker", Weight: 2, Begin: on(role.Worker, stop)},
		{Name: "freeze worker", Weight: 1, Lasts: span{2 * ttr, 3 * ttr}, Begin: on(role.Worker, freeze)},
		{Name: "no processor time", Weight: 1, Lasts: span{ttr, 3 * ttr}, Begin: on(role.Worker, starve)},
		{Name: "out of memory", Weight: 2, Begin: on(role.Worker, noMemory), Kills: true, Shows: evidence.Interrupted},
		{Name: "out of file descriptors", Weight: 1, Lasts: span{1 * sec, 2 * ttr}, Begin: on(role.Worker, noFiles)},
		{
			Name: "thousands due at once", Weight: 1, Lasts: span{5 * sec, 6 * sec},
			Begin: on(role.Saver, burst), Shows: evidence.MostChanged,
		},
	}),
	[]Kind{ // The crashes that tasks ask for: the processes note them themselves.
		{Name: role.KillAfterClaim, Shows: evidence.Interrupted},
		{Name: role.KillBeforeSettle, Shows: evidence.Changed},
		{Name: role.KillAfterReturn, Shows: evidence.Changed},
	},
	in(Statements, evidence.Changed, []Kind{
		lost(proxy.Insert, proxy.Reply, 6), lost(proxy.Claim, proxy.Reply, 4), lost(proxy.Settle, proxy.Reply, 4),
		lost(proxy.Commit, proxy.Reply, 2), lost(proxy.Insert, proxy.Request, 1), lost(proxy.Claim, proxy.Request, 1),
		lost(proxy.Settle, proxy.Request, 1), lost(proxy.Commit, proxy.Request, 1),
		{Name: "reset connections", Weight: 1, Begin: reset, Shows: evidence.Busy},
		{Name: "kill busy connections", Weight: 1, Begin: killAll(true), Shows: evidence.AnyBusy},
		{Name: "node rows lie about their addresses", Weight: 1, Begin: lie, Shows: evidence.AnyBusy},
	}),
	in(Networks, evidence.Busy, []Kind{
		{Name: "partition of a worker", Weight: 4, Lasts: span{ttr / 2, 3 * ttr}, Begin: on(role.Worker, cut)},
		{
			Name: "partition that heals as the lease ends", Weight: 4, Lasts: span{ttr * 8 / 10, ttr * 13 / 10},
			Begin: on(role.Worker, cut),
		},
		{Name: "slow network", Weight: 1, Lasts: span{2 * sec, 5 * sec}, Begin: bad(proxy.Latency(50*ms, 500*ms))},
		{Name: "narrow network", Weight: 1, Lasts: span{2 * sec, 5 * sec}, Begin: bad(proxy.Bandwidth(10))},
		{
			Name: "sliced packets", Weight: 1, Lasts: span{2 * sec, 5 * sec},
			Begin: bad(proxy.Latency(0, 2*ms), proxy.Slices(7, ms/10)),
		},
		{Name: "torn connections", Weight: 1, Lasts: span{1 * sec, 4 * sec}, Begin: torn},
	}),
	in(Databases, evidence.AnyBusy, []Kind{
		{Name: "20 workers join and leave", Weight: 1, Lasts: span{3 * sec, 6 * sec}, Begin: crowd},
		{Name: "kill database", On: OneServer, Weight: 16, Lasts: span{0, 3 * sec}, Begin: crash},
		{Name: "database hangs", On: OneServer, Weight: 2, Lasts: span{1 * sec, 12 * sec}, Begin: hang},
		{Name: "member killed", On: Members, Weight: 8, Lasts: span{0, 5 * sec}, Begin: onMember(killed, rejoins)},
		{
			Name: "member frozen", On: Members, Weight: 3, Lasts: span{1 * sec, 20 * sec},
			Begin: onMember(frozen, thawed),
		},
		{Name: "database out of reach", Weight: 1, Lasts: span{2 * sec, 12 * sec}, Begin: away},
		{Name: "freeze all workers", Weight: 1, Lasts: span{2 * ttr, 3 * ttr}, Begin: freezeAll},
		{Name: "read-only database", Weight: 2, Lasts: span{1 * sec, 5 * sec}, Begin: readOnly},
		{Name: "too many connections", Weight: 2, Lasts: span{2 * sec, 6 * sec}, Begin: few},
		{Name: "kill all connections", Weight: 2, Begin: killAll(false)},
		{Name: "locked rows", Weight: 2, Lasts: span{2 * sec, 8 * sec}, Begin: lockSome, Shows: evidence.Changed},
		{Name: "deadlocks", Weight: 2, Lasts: span{2 * sec, 6 * sec}, Begin: lockConflicts, Shows: evidence.Changed},
		{Name: "long snapshot", Weight: 1, Lasts: span{5 * sec, 20 * sec}, Begin: snapshot},
		{Name: "alter table", On: OneServer, Weight: 2, Lasts: span{0, 2 * sec}, Begin: alter},
		{Name: "rows changed by hand", Weight: 2, Begin: byHand, Shows: evidence.Changed},
		{Name: "full disk", On: OneServer, Weight: 2, Lasts: span{4 * sec, 12 * sec}, Begin: fullDisk},
	}),
)

// span is how long a fault lasts, at least and at most.
type span = [2]time.Duration

func Killers() (names []string) {
	for _, k := range Kinds {
		if k.Kills {
			names = append(names, k.Name)
		}
	}
	return names
}

// in puts kinds into a lane. They show in the given way unless they name another.
func in(lane Lane, shows func(*evidence.Evidence, evidence.Episode) bool, kinds []Kind) []Kind {
	for i := range kinds {
		kinds[i].Lane = lane
		if kinds[i].Shows == nil {
			kinds[i].Shows = shows
		}
	}
	return kinds
}

func lost(kind proxy.Kind, what proxy.Loss, weight int) Kind {
	k := Kind{Name: "lost reply to " + string(kind), Weight: weight, Begin: loss(kind, what)}
	if what == proxy.Request {
		k.Name = "lost " + string(kind)
	}
	if what == proxy.Request && kind == proxy.Commit {
		k.Shows = evidence.Answered // for nothing was written
	}
	return k
}
