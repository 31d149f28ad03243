package ledger

import (
	"fmt"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/test/lab/record"
)

// aim is how often a group of faults is to be met.
type aim struct {
	what  string
	least int
	kinds []string
}

// aims are counted over all servers. Their kinds are named as package fault names them, which a test there looks after.
var aims = []aim{
	{"process kills", 500, []string{
		"kill worker", "kill saver", "kill after claim", "kill before settle", "kill after return",
	}},
	{"database kills", 50, []string{"kill database", memberKilled}},
	{"lost replies", 1000, []string{
		"lost reply to insert", "lost reply to claim", "lost reply to settle", "lost reply to commit",
	}},
	{"partitions", 50, []string{"partition of a worker", "partition that heals as the lease ends"}},
}

const memberKilled = "member killed"

// AimedKinds are the names of all faults that an aim counts.
func AimedKinds() (names []string) {
	for _, a := range aims {
		names = append(names, a.kinds...)
	}
	return names
}

const (
	tasksAimed     = 1_000_000
	clusterSeconds = 10 * 60 // of faults, on each kind of cluster
	growthSeconds  = 60 * 60
)

// clusters are the kinds of several servers.
var clusters = []struct{ kind, name, written string }{
	{"galera", "Galera", "all members written"}, {"group", "group replication", "all members written"},
	{"primary", "group with one primary", "the primary written"},
}

// reached writes what was reached beside the aims.
func reached(b *strings.Builder, lines []Line) {
	b.WriteString("| figure | aim | reached | injected | 95 % upper bound |\n|---|---|---|---|---|\n")
	for _, a := range aims {
		n := faultsOf(lines, a.kinds...)
		fmt.Fprintf(b, "| %s | %d | %d | %d | |\n", a.what, a.least, n.Confirmed, n.Injected)
	}
	tasks := sum(lines, func(l Line) int { return l.Tasks })
	accepted := sum(lines, func(l Line) int { return l.Accepted })
	fmt.Fprintf(b, "| saves accepted under faults | %d | %d | | |\n", tasksAimed, accepted)
	for _, p := range []struct{ number, what string }{{"1", "lost"}, {"4", "completed twice"}, {"5", "started early"}} {
		zero(b, "of these "+p.what, violations(lines, p.number), tasks)
	}
	fmt.Fprintf(b, "| executions that succeeded beside the one that counts | counted | %d | | |\n",
		sum(lines, func(l Line) int { return l.Extra }))
	for _, c := range clusters {
		on := slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.Kind != c.kind })
		n := faultsOf(on, memberKilled)
		fmt.Fprintf(b, "| %s, %s: faults for | %d s | %d s | | |\n", c.name, c.written, clusterSeconds,
			sum(on, func(l Line) int { return l.Seconds }))
		fmt.Fprintf(b, "| %s: members killed | some | %d | %d | |\n", c.name, n.Confirmed, n.Injected)
		zero(b, c.name+": completed twice", violations(on, "4"), sum(on, func(l Line) int { return l.Tasks }))
	}
	steady(b, lines)
}

// zero is a row of what must not happen. Without tasks it shows no zero.
func zero(b *strings.Builder, what string, violations, n int) {
	reached := "not run"
	if n > 0 {
		reached = fmt.Sprint(violations)
	}
	fmt.Fprintf(b, "| %s | 0 | %s | | %s |\n", what, reached, record.UpperBound(violations, n, "task"))
}

// steady shows the longest run.
func steady(b *strings.Builder, lines []Line) {
	longest := slices.MaxFunc(lines, func(a, b Line) int { return a.Seconds - b.Seconds })
	g := longest.Workers
	fmt.Fprintf(b, "| the steady worker's memory at most, in the first and second half of the longest run |"+
		" no growth in %d s | %d and %d MiB in %d s | | |\n",
		growthSeconds, g.Early.Memory/mega, g.Late.Memory/mega, longest.Seconds)
	fmt.Fprintf(b, "| its goroutines at most, likewise | no growth in %d s | %d and %d in %d s | | |\n", growthSeconds,
		g.Early.Goroutines, g.Late.Goroutines, longest.Seconds)
}

func faultsOf(lines []Line, kinds ...string) (n Fault) {
	for _, l := range lines {
		for _, kind := range kinds {
			n.Injected += l.Faults[kind].Injected
			n.Confirmed += l.Faults[kind].Confirmed
		}
	}
	return n
}

func violations(lines []Line, invariant string) int {
	return sum(lines, func(l Line) int { return l.Broken[invariant] })
}
