package main

import (
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"
)

// report collects the figures of all turns.
type report struct {
	options  options
	begun    time.Time
	turns    map[string]map[string][]float64 // by system and key
	versions map[string]string               // of the servers, by system
	left     map[string]string               // why a system was left out
}

func newReport(o options) *report {
	return &report{
		options: o, begun: time.Now(),
		turns: map[string]map[string][]float64{}, versions: map[string]string{}, left: map[string]string{},
	}
}

func (r *report) add(system string, found figures) {
	if r.turns[system] == nil {
		r.turns[system] = map[string][]float64{}
	}
	for key, value := range found {
		r.turns[system][key] = append(r.turns[system][key], value)
	}
}

// lines are the rows of the table.
var lines = []struct{ key, means string }{
	{"saves", "saves a second, 64 callers"}, {"save.p50", "a save, p50 ms"}, {"save.p99", "a save, p99 ms"},
	{"bulk", "saves a second in bulk"}, {"drain", "due tasks run a second"},
	{"late.500.p50", "late at 500 a second, p50 ms"}, {"late.500.p99", "p99 ms"}, {"late.500.max", "max ms"},
	{"late.500.early", "too early, %"}, {"late.500.earliest", "the earliest, ms"},
	{"late.2000.p50", "late at 2,000 a second, p50 ms"}, {"late.2000.p99", "p99 ms"}, {"late.2000.max", "max ms"},
	{"late.2000.early", "too early, %"}, {"late.2000.earliest", "the earliest, ms"},
	{"short.p50", "late, delays under 5 s, p50 ms"}, {"short.p99", "p99 ms"}, {"short.max", "max ms"},
	{"short.early", "too early, %"},
	{"now.p50", "delay 0: save to start, p50 ms"}, {"now.p99", "p99 ms"},
	{"other.now.p50", "the same, another process runs it, p50 ms"}, {"other.now.p99", "p99 ms"},
	{"other.short.p50", "late, delays under 2 s, another process runs it, p50 ms"},
	{"other.short.p99", "p99 ms"}, {"other.short.early", "too early, %"},
	{"crash", "a killed worker's tasks run again after, s"},
}

func (r *report) String() string {
	var b strings.Builder
	names := slices.DeleteFunc(systemNames(), func(name string) bool { return r.turns[name] == nil })
	fmt.Fprintf(&b, "# delaytask and its peers\n\nTaken on %s on a machine with %d cores (%s) by `make peers`,"+
		" in %d turns.\n",
		r.begun.UTC().Format("2006-01-02"), runtime.NumCPU(), cpuModel(), r.options.turns)
	b.WriteString("Each system has a server of its own, and all have one disk. A cell is the median of the turns," +
		" with their least\nand greatest value.\n\n|")
	for _, name := range names {
		b.WriteString(" | " + name)
	}
	b.WriteString(" |\n|---" + strings.Repeat("|---:", len(names)) + "|\n")
	for _, line := range lines {
		row, any := "| "+line.means, false
		for _, name := range names {
			cell := cellOf(r.turns[name][line.key], line.key, r.options)
			row, any = row+" | "+cell, any || cell != "–"
		}
		if any {
			b.WriteString(row + " |\n")
		}
	}
	b.WriteString("\n| system | server | an accepted task survives | configured |\n|---|---|---|---|\n")
	for _, s := range systems {
		if r.turns[s.name] != nil {
			fmt.Fprintf(&b, "| %s %s | %s | %s | %s |\n",
				s.name, moduleVersion(s.name), r.versions[s.name], s.durable, s.settings)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.left)) {
		fmt.Fprintf(&b, "\n%s was left out: %s\n", name, r.left[name])
	}
	return b.String()
}

func cellOf(turns []float64, key string, o options) string {
	if len(turns) == 0 {
		return "–"
	}
	sorted := slices.Sorted(slices.Values(turns))
	if key == "crash" && sorted[0] >= 120 && !o.quick {
		return "> 120"
	}
	cell := digits(sorted[len(sorted)/2])
	if len(sorted) > 1 {
		cell += " [" + digits(sorted[0]) + "–" + digits(sorted[len(sorted)-1]) + "]"
	}
	return cell
}

// digits keeps three digits, and separates thousands.
func digits(v float64) string {
	switch abs := max(v, -v); {
	case abs >= 1000:
		n := strconv.Itoa(int(abs))
		n = n[:len(n)-3] + "," + n[len(n)-3:]
		if v < 0 {
			n = "−" + n
		}
		return n
	case abs >= 100:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case abs >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	default:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
}

func (f figures) String() string {
	var parts []string
	for _, key := range slices.Sorted(maps.Keys(f)) {
		parts = append(parts, key+" "+digits(f[key]))
	}
	return strings.Join(parts, ", ")
}

// moduleVersion returns the version of the library of a system.
func moduleVersion(system string) string {
	module := map[string]string{
		"River": "github.com/riverqueue/river", "Asynq": "github.com/hibiken/asynq",
		"backlite": "github.com/mikestefanello/backlite",
	}[strings.Fields(system)[0]]
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, dep := range info.Deps {
		if dep.Path == module {
			return dep.Version
		}
	}
	return ""
}

func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
