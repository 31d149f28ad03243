package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

// seriesFlags say which series is shown.
type seriesFlags struct {
	since relative
	tag   string
}

func (f *seriesFlags) addFlags(cmd *cobra.Command) {
	agoVar(cmd, &f.since, "since", "over time: since 1h or 7d (ago), 2027-01-31 or 08:30 (default 1h with --tag)")
	cmd.Flags().StringVar(&f.tag, "tag", "", "over time: of this tag (default: all tags together)")
}

func (f *seriesFlags) given(cmd *cobra.Command) bool {
	return cmd.Flags().Changed("since") || cmd.Flags().Changed("tag")
}

func (a *app) showSeries(cmd *cobra.Command, f *seriesFlags) error {
	if now := time.Now(); f.since.given && !f.since.from(now).Before(now) {
		return misusedf("--since: want a time in the past")
	}
	return a.onTasks(cmd, reads, func(ctx context.Context, s *scheduler.Scheduler) error {
		series, err := a.view().Series(ctx, report.SeriesFilter{Tag: f.tag, From: f.since.from(s.Now())})
		if err != nil {
			return err
		}
		if a.json {
			shown := wire.FromSeries(&series)
			shown.Tag = f.tag
			return a.printJSON(shown)
		}
		return a.printSeries(f.tag, &series)
	})
}

func (a *app) printSeries(tag string, s *report.Series) error {
	by := "minute"
	if s.Span > time.Minute {
		by = "hour"
	}
	head := fmt.Sprintf("%s, by the %s from %s to %s\n", cmp.Or(tag, "all tags"), by, moment(s.From), moment(s.To))
	if len(s.Points) == 0 {
		head += "Nothing was counted in that time. Each minute is written up to 10 s after its end.\n"
	}
	return a.painted(oneLine(strings.TrimSuffix(head, "\n")) + "\n" + a.screen.plot(s, by))
}

// plotWidth is how many columns a plot has where the screen is not known.
const plotWidth = 60

// plot draws a line for each figure, with a column for each span, or for several where there are many. A column of
// which nothing is known stays empty.
func (s screen) plot(series *report.Series, by string) string {
	const margin = 40 // the names and the maximum
	width := plotWidth
	if s.width > 0 {
		width = max(s.width-margin, leastBar)
	}
	c := columnsOf(series, width)
	count := func(of func(report.SeriesPoint) int64) (line []float64, words string) {
		line, sum, most := make([]float64, len(c.points)), int64(0), 0.0
		for i, p := range c.points {
			line[i] = float64(of(p))
			most, sum = max(most, line[i]), sum+of(p)
		}
		return line, fmt.Sprintf("%s, most %s", grouped(int(sum)), grouped(int(most)))
	}
	var out strings.Builder
	row := func(name string, as style, line []float64, least float64, words string) {
		fmt.Fprintf(&out, "%-10s %s %s\n", name, s.paint(s.bars(line, c.known, least), as), words)
	}
	if c.any {
		line, words := count(func(p report.SeriesPoint) int64 { return p.Completed })
		row("completed", green, line, 1, words)
		line, words = count(func(p report.SeriesPoint) int64 { return p.Retried })
		row("retried", yellow, line, 1, words)
		line, words = count(func(p report.SeriesPoint) int64 { return p.Failed })
		row("failed", red, line, 1, words)
		line, words = count(func(p report.SeriesPoint) int64 { return p.Lost })
		row("lost", red, line, 1, words)
		for _, l := range []struct {
			name string
			of   func(report.SeriesPoint) time.Duration
		}{
			{"late p50", func(p report.SeriesPoint) time.Duration { return p.P50 }},
			{"late p99", func(p report.SeriesPoint) time.Duration { return p.P99 }},
			{"late max", func(p report.SeriesPoint) time.Duration { return p.Max }},
		} {
			line, words := c.lateness(l.of)
			row(l.name, plain, line, math.Log(10), words)
		}
		fmt.Fprintf(&out, "%-10s %s\n", "marks", c.marks(series))
		if c.each > 1 {
			fmt.Fprintf(&out, "A column has %d %ss: what was counted in them, and the latest.\n", c.each, by)
		}
	}
	for _, m := range series.Marks {
		fmt.Fprintf(&out, "%s  %s\n", moment(m.Time), oneLine(markText(m)))
	}
	return out.String()
}

func markText(m report.SeriesMark) string {
	switch m.Kind {
	case report.MarkPaused, report.MarkResumed:
		return string(m.Kind) + " tag " + m.Tag
	case report.MarkFailover:
		return "failover: server " + m.Name + " answers"
	default:
		return "node " + m.Name + " " + string(m.Kind)
	}
}

// columns are the columns of a plot.
type columns struct {
	points []report.SeriesPoint
	known  []bool
	any    bool
	each   int // spans in a column
}

func columnsOf(s *report.Series, width int) columns {
	spans := int((s.To.Sub(s.From) + s.Span - 1) / s.Span)
	c := columns{each: max((spans+width-1)/width, 1)}
	n := (spans + c.each - 1) / c.each
	c.points, c.known = make([]report.SeriesPoint, n), make([]bool, n)
	for _, p := range s.Points {
		i := c.at(s, p.Start)
		if i < 0 {
			continue
		}
		sum := &c.points[i]
		c.known[i], c.any = true, true
		sum.Completed += p.Completed
		sum.Retried += p.Retried
		sum.Failed += p.Failed
		sum.Lost += p.Lost
		sum.P50, sum.P99, sum.Max = max(sum.P50, p.P50), max(sum.P99, p.P99), max(sum.Max, p.Max)
		sum.Started += p.Started
	}
	return c
}

// at returns the column of a moment, or -1.
func (c *columns) at(s *report.Series, t time.Time) int {
	i := int(t.Sub(s.From)/s.Span) / c.each
	if t.Before(s.From) || i >= len(c.points) {
		return -1
	}
	return i
}

// lateness returns by how much the logarithms of a line are above the logarithm of its smallest value.
func (c *columns) lateness(of func(report.SeriesPoint) time.Duration) (line []float64, words string) {
	line = make([]float64, len(c.points))
	var least, most time.Duration
	for _, p := range c.points {
		if d := of(p); p.Started > 0 {
			if least == 0 || d < least {
				least = d
			}
			most = max(most, d)
		}
	}
	for i, p := range c.points {
		if p.Started > 0 {
			line[i] = math.Log(float64(max(of(p), 1)) / float64(max(least, 1)))
		}
	}
	return line, lateness(least) + " to " + lateness(most)
}

// marks draws where something happened.
func (c *columns) marks(s *report.Series) string {
	line := []byte(strings.Repeat(" ", len(c.points)))
	for _, m := range s.Marks {
		if i := c.at(s, m.Time); i >= 0 {
			line[i] = '^'
		}
	}
	return strings.TrimRight(string(line), " ")
}

// The levels of a plot. The first is for nothing.
var (
	blockLevels = []rune("▁▂▃▄▅▆▇█")
	asciiLevels = []rune("_.:-=+*#")
)

// bars draws a line of values, from nothing to the largest one, or to least where that is more.
func (s screen) bars(line []float64, known []bool, least float64) string {
	levels, most := asciiLevels, least
	if s.blocks {
		levels = blockLevels
	}
	for _, v := range line {
		most = max(most, v)
	}
	out := make([]rune, len(line))
	for i, v := range line {
		switch {
		case !known[i]:
			out[i] = ' '
		case v <= 0:
			out[i] = levels[0]
		default:
			out[i] = levels[1+min(int(v/most*float64(len(levels)-1)), len(levels)-2)]
		}
	}
	return string(out)
}
