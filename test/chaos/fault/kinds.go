package fault

import (
	"time"

	"github.com/delaytask/delaytask/test/chaos/evidence"
	"github.com/delaytask/delaytask/test/chaos/proxy"
	"github.com/delaytask/delaytask/test/chaos/role"
)

const second = time.Second

// Kinds are all kinds of faults. What needs more than a machine has says in Begin that there is nothing.
var Kinds = []Kind{
	{Name: "kill worker", Lane: Processes, Weight: 12, New: fresh(kill{role: role.Worker}), Kills: true, Shows: evidence.Interrupted},
	{Name: "kill saver", Lane: Processes, Weight: 3, New: fresh(kill{role: role.Saver}), Kills: true, Shows: evidence.Interrupted},
	{Name: "stop worker", Lane: Processes, Weight: 2, New: fresh(stop{}), Shows: evidence.Busy},
	{
		Name: "freeze worker", Lane: Processes, Weight: 1, Lasts: between(2*role.TTR, 3*role.TTR),
		New: func() Fault { return &freeze{} }, Shows: evidence.Busy,
	},
	{
		Name: "no processor time", Lane: Processes, Weight: 1, Lasts: between(role.TTR, 3*role.TTR),
		New: func() Fault { return &starve{} }, Shows: evidence.Busy,
	},
	{
		Name: "out of memory", Lane: Processes, Weight: 2, New: func() Fault { return &noMemory{} }, Kills: true,
		Shows: evidence.Interrupted,
	},
	{
		Name: "out of file descriptors", Lane: Processes, Weight: 1, Lasts: between(1*second, 2*role.TTR),
		New: func() Fault { return &noFiles{} }, Shows: evidence.Busy,
	},
	{
		Name: "thousands due at once", Lane: Processes, Weight: 1, Lasts: between(5*second, 6*second),
		New: fresh(burst{}), Shows: evidence.MostChanged,
	},
	{
		Name: "20 workers join and leave", Lane: Databases, Weight: 1, Lasts: between(3*second, 6*second),
		New: func() Fault { return &crowd{} }, Shows: evidence.AnyBusy,
	},

	// The deaths that tasks ask for: the processes note them themselves.
	{Name: role.KillAfterClaim, Shows: evidence.Interrupted},
	{Name: role.KillBeforeSettle, Shows: evidence.Changed},
	{Name: role.KillAfterReturn, Shows: evidence.Changed},

	lost(proxy.Insert, proxy.Reply, 6), lost(proxy.Claim, proxy.Reply, 4), lost(proxy.Settle, proxy.Reply, 4),
	lost(proxy.Commit, proxy.Reply, 2), lost(proxy.Insert, proxy.Request, 1), lost(proxy.Claim, proxy.Request, 1),
	lost(proxy.Settle, proxy.Request, 1), lost(proxy.Commit, proxy.Request, 1),
	{Name: "reset connections", Lane: Statements, Weight: 1, New: fresh(reset{}), Shows: evidence.Busy},
	{Name: "kill busy connections", Lane: Statements, Weight: 1, New: fresh(killAll{busyOnly: true}), Shows: evidence.AnyBusy},

	{
		Name: "partition of a worker", Lane: Networks, Weight: 4, Lasts: between(role.TTR/2, 3*role.TTR),
		New: func() Fault { return &cut{} }, Shows: evidence.Busy,
	},
	{
		Name: "partition that heals as the lease ends", Lane: Networks, Weight: 4, Lasts: between(role.TTR*8/10, role.TTR*13/10),
		New: func() Fault { return &cut{} }, Shows: evidence.Busy,
	},
	{
		Name: "slow network", Lane: Networks, Weight: 1, Lasts: between(2*second, 5*second),
		New: worse(proxy.Latency(50*time.Millisecond, 500*time.Millisecond)), Shows: evidence.Busy,
	},
	{
		Name: "narrow network", Lane: Networks, Weight: 1, Lasts: between(2*second, 5*second),
		New: worse(proxy.Bandwidth(10)), Shows: evidence.Busy,
	},
	{
		Name: "sliced packets", Lane: Networks, Weight: 1, Lasts: between(2*second, 5*second),
		New: worse(proxy.Latency(0, 2*time.Millisecond), proxy.Slices(7, 100*time.Microsecond)), Shows: evidence.Busy,
	},
	{
		Name: "torn connections", Lane: Networks, Weight: 1, Lasts: between(1*second, 4*second),
		New: func() Fault { return &torn{} }, Shows: evidence.Busy,
	},

	{
		Name: "kill database", Lane: Databases, On: OneServer, Weight: 16, Lasts: between(0, 3*second),
		New: func() Fault { return &crash{} }, Shows: evidence.AnyBusy,
	},
	{
		Name: "database hangs", Lane: Databases, On: OneServer, Weight: 2, Lasts: between(1*second, 12*second),
		New: func() Fault { return &hang{} }, Shows: evidence.AnyBusy,
	},
	{
		Name: "member killed", Lane: Databases, On: Members, Weight: 8, Lasts: between(0, 5*second),
		New: func() Fault { return &fall{} }, Shows: evidence.AnyBusy,
	},
	{
		Name: "member frozen", Lane: Databases, On: Members, Weight: 3, Lasts: between(1*second, 20*second),
		New: func() Fault { return &stiff{} }, Shows: evidence.AnyBusy,
	},
	{
		Name: "nobody reaches the database", Lane: Databases, Weight: 1, Lasts: between(2*second, 12*second),
		New: fresh(away{}), Shows: evidence.AnyBusy,
	},
	{
		Name: "freeze all workers", Lane: Databases, Weight: 1, Lasts: between(2*role.TTR, 3*role.TTR),
		New: func() Fault { return &freeze{all: true} }, Shows: evidence.AnyBusy,
	},
	{
		Name: "read-only database", Lane: Databases, Weight: 2, Lasts: between(1*second, 5*second),
		New: func() Fault { return &readOnly{} }, Shows: evidence.AnyBusy,
	},
	{
		Name: "too many connections", Lane: Databases, Weight: 2, Lasts: between(2*second, 6*second),
		New: func() Fault { return &few{} }, Shows: evidence.AnyBusy,
	},
	{Name: "kill all connections", Lane: Databases, Weight: 2, New: fresh(killAll{}), Shows: evidence.AnyBusy},
	{
		Name: "locked rows", Lane: Databases, Weight: 2, Lasts: between(2*second, 8*second),
		New: func() Fault { return &holder{} }, Shows: evidence.Changed,
	},
	{
		Name: "deadlocks", Lane: Databases, Weight: 2, Lasts: between(2*second, 6*second),
		New: func() Fault { return &quarrel{} }, Shows: evidence.Changed,
	},
	{
		Name: "long snapshot", Lane: Databases, Weight: 1, Lasts: between(5*second, 20*second),
		New: func() Fault { return &snapshot{} }, Shows: evidence.AnyBusy,
	},
	{
		Name: "alter table", Lane: Databases, On: OneServer, Weight: 2, Lasts: between(0, 2*second),
		New: func() Fault { return &alter{} }, Shows: evidence.AnyBusy,
	},
	{Name: "rows changed by hand", Lane: Databases, Weight: 2, New: fresh(byHand{}), Shows: evidence.Changed},
	{
		Name: "full disk", Lane: Databases, On: OneServer, Weight: 2, Lasts: between(4*second, 12*second),
		New: func() Fault { return &fullDisk{} }, Shows: evidence.AnyBusy,
	},
}

// Killers returns the names of those that end a process.
func Killers() (names []string) {
	for _, k := range Kinds {
		if k.Kills {
			names = append(names, k.Name)
		}
	}
	return names
}

func fresh(f Fault) func() Fault { return func() Fault { return f } }

func worse(what ...proxy.Toxic) func() Fault { return func() Fault { return &bad{what: what} } }

func lost(kind proxy.Kind, what proxy.Loss, weight int) Kind {
	k := Kind{Lane: Statements, Weight: weight, New: fresh(loss{kind: kind, loses: what}), Shows: evidence.Changed}
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
