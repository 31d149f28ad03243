package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/testkit/judge"
	"github.com/delaytask/delaytask/test/lab/record"
)

// Tables are those of docs/reliability.md: the runs of the code of the last line, added up. What came before the last
// change of engine or store is left out.
func Tables(lines []Line) string {
	if len(lines) == 0 {
		return "No run has been recorded yet.\n"
	}
	last := lines[len(lines)-1]
	lines = slices.DeleteFunc(slices.Clone(lines), func(l Line) bool { return l.Code != last.Code })
	var b strings.Builder
	fmt.Fprintf(&b, "%s of code `%s` (engine and store; last commit `%s`), %s of faults in all.\n\n",
		plural(len(lines), "run"), last.Code, last.Commit, hours(lines))
	reached(&b, lines)
	b.WriteString("\n")
	outcomes(&b, lines)
	b.WriteString("\n")
	faults(&b, lines)
	b.WriteString("\n")
	runs(&b, lines)
	return b.String()
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

func hours(lines []Line) string {
	return fmt.Sprintf("%.1f h", float64(sum(lines, func(l Line) int { return l.Seconds }))/3600)
}

func outcomes(b *strings.Builder, lines []Line) {
	tasks := sum(lines, func(l Line) int { return l.Tasks })
	b.WriteString("| invariant | violations | 95 % upper bound |\n|---|---|---|\n")
	for _, p := range judge.Invariants {
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
