package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

func TestForecastIsShownAsAPlotAndATable(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.ok("migrate", "up")
	contains(t, s.counted(), "Overdue now: 0 tasks. Due within 1h: 0 tasks.\n")
	s.save("mail", "1")
	for range 3 {
		s.save("mail", "1", "--delay", "20m")
	}
	s.ok("schedule", "create", "s", "@every 1h", "--tag", "report")
	contains(t, s.counted("--tag", "mail"), "Overdue now: 1 task. Due within 1h: 3 tasks.", "Up to 3 in 1m",
		"\n"+strings.Repeat("-", 60)+"\nfrom ", "TAG   OVERDUE  DUE  TICKS  PEAK  AT\nmail  1        3    0      3 ")
	contains(t, s.counted("--span", "24h"), "of them ticks of schedules", "report")
	var f wire.Forecast
	if err := json.Unmarshal([]byte(s.counted("--span", "30d", "--json")), &f); err != nil {
		t.Fatal(err)
	}
	if f.Steps != 120 || f.StepMS != 6*3600*1000 || len(f.Tags) != 2 || f.Total.Sum.Ticks < 700 ||
		f.Tags[0].Overdue.Tasks != 1 || f.Tags[0].Sum.Tasks != 3 || f.Tags[0].Sum.Precision != "exact" {
		t.Errorf("got %+v", f)
	}
}

// counted prints a forecast that had the time to count all.
func (s *shell) counted(args ...string) (out string) {
	servertest.Eventually(s.t, "a forecast counts all", func() bool {
		out = s.ok(append([]string{"forecast"}, args...)...)
		return !strings.ContainsAny(out, "≈≥") && !strings.Contains(out, `"at_least"`)
	})
	return out
}

func TestThePlotOfAForecastFitsTheTerminal(t *testing.T) {
	t.Parallel()
	f := report.Forecast{Start: time.Unix(0, 0), Step: 6 * time.Hour, Steps: 120}
	due := make([]report.DueTasks, f.Steps)
	due[1].Tasks, due[60].Tasks, due[119].Tasks = 800, 1, 400
	for _, width := range []int{0, 20, 61, 120, 121, 200} {
		out := forecastPlot(&f, due, screen{width: width, blocks: true})
		for line := range strings.Lines(out) {
			if w := runewidth.StringWidth(line) - 1; width > 0 && w > width && !strings.HasPrefix(line, "from ") {
				t.Errorf("%d of %d columns: %s", w, width, line)
			}
		}
		contains(t, out, "█", "▁")
	}
	contains(t, forecastPlot(&f, due, screen{}), "\n #"+strings.Repeat(" ", 117)+"#\n")
	if of := inFigures(report.DueTasks{Tasks: 1234, Precision: report.About}); of != "≈1,234" {
		t.Error(of)
	}
}
