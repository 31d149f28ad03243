package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/testkit/judge"
	"github.com/delaytask/delaytask/test/lab/record"
)

// Tables makes the tables of test/lab/results/reliability.md: the runs of the code of the last line, added up. What
// came before the last change of engine or store is left out.
func Tables(lines []Line) string {
	if len(lines) == 0 {
		return none
	}
	lines = ofLastCode(lines)
	var b strings.Builder
	b.WriteString(Summary(lines))
	b.WriteString("\n")
	outcomes(&b, lines)
	b.WriteString("\n")
	faults(&b, lines)
	b.WriteString("\n")
	runs(&b, lines)
	return b.String()
}

// Summary is the table of docs/measured.md: what was reached beside the aim.
func Summary(lines []Line) string {
	if len(lines) == 0 {
		return none
	}
	lines = ofLastCode(lines)
	last := lines[len(lines)-1]
	var b strings.Builder
	seconds := sum(lines, func(l Line) int { return l.Seconds })
	fmt.Fprintf(&b, "%s of code `%s` (engine and store; last commit `%s`), %.1f h of faults in all.\n\n",
		plural(len(lines), "run"), last.Code, last.Commit, float64(seconds)/3600)
	reached(&b, lines)
	return b.String()
}

const none = "No run has been recorded yet.\n"

func ofLastCode(lines []Line) []Line {
	last := lines[len(lines)-1]
	return slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.Code != last.Code })
}

func sum(lines []Line, of func(Line) int) (n int) {
	for _, l := range lines {
		n += of(l)
	}
	return n
}

func most(lines []Line, of func(Line) float64) (n float64) {
	for _, l := range lines {
		n = max(n, of(l))
	}
	return n
}

func outcomes(b *strings.Builder, lines []Line) {
	tasks := sum(lines, func(l Line) int { return l.Tasks })
	b.WriteString("| invariant | violations | 95 % upper bound |\n|---|---|---|\n")
	for _, p := range judge.Invariants {
		if p.Number >= judge.OfSchedules {
			continue // its workload has none
		}
		n := violations(lines, fmt.Sprint(p.Number))
		fmt.Fprintf(b, "| %d %s | %d | %s |\n", p.Number, p.Violation, n, record.UpperBound(n, tasks, "task"))
	}
	histories := sum(lines, func(l Line) int { return l.Linear.Tasks - l.Linear.Undecided })
	n := sum(lines, func(l Line) int { return l.Linear.Broken })
	bound := record.UpperBound(n, histories, "task")
	fmt.Fprintf(b, "| histories that are not linearizable | %d | %s |\n", n, bound)
	b.WriteString("\n| figure | |\n|---|---|\n")
	for _, f := range []struct {
		what string
		of   func(Line) int
	}{
		{"saves accepted", func(l Line) int { return l.Accepted }},
		{"tasks", func(l Line) int { return l.Tasks }},
		{"executions", func(l Line) int { return l.Executions }},
		{"executions that succeeded beside the one that counts", func(l Line) int { return l.Extra }},
		{"saves of unknown outcome", func(l Line) int { return l.Unknown }},
		{"leases rescued", func(l Line) int { return l.Rescued }},
		{"tasks quarantined", func(l Line) int { return l.Quarantine }},
		{"tasks whose history was checked to be linearizable", func(l Line) int { return l.Linear.Tasks }},
		{"operations in these histories", func(l Line) int { return l.Linear.Operations }},
		{"of these, of unknown outcome", func(l Line) int { return l.Linear.Unknown }},
		{"histories that took too long to decide", func(l Line) int { return l.Linear.Undecided }},
	} {
		fmt.Fprintf(b, "| %s | %d |\n", f.what, sum(lines, f.of))
	}
	fmt.Fprintf(b, "| latest first start of what was due after the faults | %.2f s |\n",
		most(lines, func(l Line) float64 { return l.Latest }))
	if slowest := most(lines, func(l Line) float64 { return l.Slowest }); slowest > 0 {
		fmt.Fprintf(b, "| latest rescue after the end of its lease and of the faults | %.2f s |\n", slowest)
	}
	fmt.Fprintf(b, "| longest time from the last fault until all was done | %.1f s |\n",
		most(lines, func(l Line) float64 { return l.Drained }))
}

func faults(b *strings.Builder, lines []Line) {
	all := map[string]Fault{}
	for _, l := range lines {
		for kind, n := range l.Faults {
			f := all[kind]
			all[kind] = Fault{f.Injected + n.Injected, f.Confirmed + n.Confirmed}
		}
	}
	b.WriteString("| fault | injected | confirmed in the journals |\n|---|---|---|\n")
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(b, "| %s | %d | %d |\n", kind, all[kind].Injected, all[kind].Confirmed)
	}
}

const mega = 1 << 20

func runs(b *strings.Builder, lines []Line) {
	b.WriteString("| run | server | commit | seed | faults for | tasks |" +
		" memory of the steady worker: first, highest of each half, last | its goroutines |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, l := range lines {
		commit := l.Commit
		if l.Changed {
			commit += " and changes"
		}
		server := l.Server
		for _, c := range clusters {
			if c.kind == l.Kind {
				server += ", " + c.written
			}
		}
		g := l.Workers
		fmt.Fprintf(b, "| %s | %s | %s | %d | %d s | %d | %d, %d, %d, %d MiB | %d, %d, %d, %d |\n",
			l.Began.Format("2006-01-02 15:04"), server, commit, l.Seed, l.Seconds, l.Tasks,
			g.First.Memory/mega, g.Early.Memory/mega, g.Late.Memory/mega, g.Last.Memory/mega,
			g.First.Goroutines, g.Early.Goroutines, g.Late.Goroutines, g.Last.Goroutines)
	}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

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
