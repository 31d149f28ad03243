package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// timings gathers how long each operation took for each contestant.
type timings map[[2]string][]time.Duration

func (t timings) add(operation, contestant string, took time.Duration) {
	key := [2]string{operation, contestant}
	t[key] = append(t[key], took)
}

// cell shows the median and, where the machine was busy with other things as well, the more telling fastest.
func (t timings) cell(operation, contestant string) string {
	sorted := slices.Sorted(slices.Values(t[[2]string{operation, contestant}]))
	if len(sorted) == 0 {
		return "–"
	}
	return milliseconds(sorted[len(sorted)/2]) + " (" + milliseconds(sorted[0]) + ")"
}

// table renders a line of Markdown for each operation, with a column for each contestant.
func (t timings) table(title string, operations, contestants []string) string {
	var table strings.Builder
	line := func(cells ...string) { table.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	line(append([]string{title}, contestants...)...)
	table.WriteString("|---|" + strings.Repeat("---:|", len(contestants)) + "\n")
	for _, operation := range operations {
		cells := []string{operation}
		for _, contestant := range contestants {
			cells = append(cells, t.cell(operation, contestant))
		}
		line(cells...)
	}
	return table.String()
}

func milliseconds(d time.Duration) string {
	ms := float64(d) / float64(time.Millisecond)
	if ms < 10 {
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}
