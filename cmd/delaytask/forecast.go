package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

func (a *app) forecastCommand() *cobra.Command {
	var tag, span string
	cmd := &cobra.Command{
		Use:   "forecast",
		Short: "Show what is overdue and what falls due, per tag",
		Long: `Show how many tasks are overdue, and how many fall due in the next hour (1h, by the minute), day (24h, by
the quarter of an hour) or month (30d, by six hours). Ticks of schedules that have no task yet are in it.

It takes the database for 0.2 s at most, so large tags are not counted: ≈ is the database's
estimate, and ≥ is how many there are at least.`,
		Example: `  delaytask forecast
  delaytask forecast --span 24h --tag order.close
  delaytask forecast --span 30d --json | jq '.total.due[] | {from, tasks}'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			of, err := wire.ParseDuration(span)
			if err == nil {
				_, err = report.ForecastStep(of)
			}
			if err != nil {
				return misusedf("--span %s: want 1h, 24h or 30d", span)
			}
			return a.onTasks(cmd, reads, func(ctx context.Context, s *scheduler.Scheduler) error {
				found, err := a.view().Forecast(ctx, report.ForecastFilter{Tag: tag, Span: of})
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(wire.FromForecast(&found))
				}
				return a.printForecast(&found, span)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&tag, "tag", "", "only this tag")
	flags.StringVar(&span, "span", "1h", "1h, 24h or 30d")
	values(cmd, "span", "1h", "24h", "30d")
	return a.withJSON(cmd)
}

func (a *app) printForecast(f *report.Forecast, span string) error {
	total := f.Total()
	sum := total.Sum()
	text := fmt.Sprintf("Overdue now: %s. Due within %s: %s.\n", tasksDue(total.Overdue), span, tasksDue(sum))
	if f.LeftOut {
		text += "There are more tags or schedules than a forecast reads.\n"
	}
	if sum.Tasks > 0 {
		text += "\n" + forecastPlot(f, total.Due, a.screen) + "\n"
	}
	if err := a.printf("%s", text); err != nil || len(f.Tags) == 0 {
		return err
	}
	t := a.newTable("TAG", "OVERDUE", "DUE", "TICKS", "PEAK", "AT").mayCut(0)
	for _, tag := range f.Tags {
		peak := 0
		for i, due := range tag.Due {
			if due.Tasks > tag.Due[peak].Tasks {
				peak = i
			}
		}
		due, at := tag.Sum(), ""
		if due.Tasks > 0 {
			at = moment(f.Start.Add(time.Duration(peak) * f.Step))
		}
		t.row(tag.Tag, inFigures(tag.Overdue), inFigures(due), grouped(int(due.Ticks)), inFigures(tag.Due[peak]), at)
		if tag.Overdue.Tasks > 0 {
			t.paint(1, yellow)
		}
	}
	return t.flush()
}

// inFigures writes a number with the sign of what it is worth.
func inFigures(d report.DueTasks) string {
	sign := map[report.Precision]string{report.About: "≈", report.AtLeast: "≥"}[d.Precision]
	return sign + grouped(int(d.Tasks))
}

func tasksDue(d report.DueTasks) string {
	text := inFigures(d) + " tasks"
	if d.Tasks == 1 {
		text = strings.TrimSuffix(text, "s")
	}
	if d.Ticks > 0 {
		text += fmt.Sprintf(" (%s of them ticks of schedules)", grouped(int(d.Ticks)))
	}
	return text
}

const plotHeight = 8 // lines

// forecastPlot draws a bar for each step, or for several together where the screen is too narrow.
func forecastPlot(f *report.Forecast, due []report.DueTasks, s screen) string {
	together := 1
	for s.width > 0 && len(due)/together+1 > max(s.width, leastBar) {
		together++
	}
	var bars []int64
	for i, d := range due {
		if i%together == 0 {
			bars = append(bars, 0)
		}
		bars[len(bars)-1] += d.Tasks
	}
	highest := int64(1)
	for _, bar := range bars {
		highest = max(highest, bar)
	}
	parts := []rune(" ▁▂▃▄▅▆▇█")
	if !s.blocks {
		parts = []rune(" #")
	}
	full := int64(len(parts) - 1)
	var out strings.Builder
	fmt.Fprintf(&out, "Up to %s in %s\n", grouped(int(highest)), span(time.Duration(together)*f.Step))
	for line := plotHeight - 1; line >= 0; line-- {
		var drawn strings.Builder
		for _, bar := range bars {
			height := (bar*full*plotHeight + highest - 1) / highest // in parts, rounded up: no bar is invisible
			drawn.WriteRune(parts[max(0, min(height-int64(line)*full, full))])
		}
		out.WriteString(strings.TrimRight(drawn.String(), " ") + "\n")
	}
	fmt.Fprintf(&out, "%s\nfrom %s to %s\n", strings.Repeat("-", len(bars)), moment(f.Start),
		moment(f.Start.Add(time.Duration(f.Steps)*f.Step)))
	return out.String()
}
