package fault

import (
	"time"

	"github.com/delaytask/delaytask/test/chaos/evidence"
	"github.com/delaytask/delaytask/test/chaos/role"
)

// Kinds are all kinds of faults. What needs more than an ordinary user and one machine says in Begin that there is nothing.
var Kinds = []Kind{
	{Name: "kill worker", Lane: Processes, Weight: 10, New: func() Fault { return kill{role: role.Worker} }, Shows: evidence.Interrupted},
	{Name: role.KillAfterClaim, Shows: evidence.Interrupted},
	{Name: role.KillBeforeSettle, Shows: evidence.Changed},
	{Name: role.KillAfterReturn, Shows: evidence.Changed},
	{Name: "kill saver", Lane: Processes, Weight: 2, New: func() Fault { return kill{role: role.Saver} }, Shows: evidence.Interrupted},
}

func between(least, most time.Duration) [2]time.Duration { return [2]time.Duration{least, most} }
