package main

import (
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
)

func TestStatsOverTimeShowWhatWasCounted(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.serve("print", 3, nil)
	s.ok("pause", "print")
	for _, args := range [][]string{{"--since", "1h"}, {"--tag", "print"}, {"--since", "7d", "--tag", "print"}} {
		var series wire.Series
		s.decode(&series, append([]string{"stats"}, args...)...)
		var completed, started int64
		for _, p := range series.Points {
			completed += p.Completed
			started += p.Lateness.Samples
		}
		if completed != 3 || started != 3 || len(series.Marks) != 3 {
			t.Errorf("%q: %+v", args, series)
		}
		contains(t, s.ok(append([]string{"stats"}, args...)...), "completed", "3, most", "late p99", " ms",
			"paused tag print")
	}
	contains(t, s.ok("stats", "--tag", "none"), "Nothing was counted")
	for _, args := range [][]string{{"--since", "soon"}, {"--since", "0s"}, {"--tag", "no tag"}} {
		if r := s.run(append([]string{"stats"}, args...)...); r.code != exitWrongUse {
			t.Errorf("%q ends with %d: %s", args, r.code, r.stderr)
		}
	}
}

func TestAPlotShowsGapsAndFitsTheScreen(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	series := report.Series{Span: time.Minute, From: at, To: at.Add(20 * time.Minute)}
	for i, n := range []int64{0, 1, 2, 4, 8, -1, -1, 5, 7} {
		if n < 0 {
			continue
		}
		series.Points = append(series.Points, report.SeriesPoint{
			Start: at.Add(time.Duration(i) * time.Minute), Completed: n, Failed: n / 8, Started: n,
			P50: time.Millisecond, P99: time.Millisecond << i, Max: time.Millisecond << i,
		})
	}
	series.Marks = []report.SeriesMark{
		{Time: at.Add(5*time.Minute + time.Second), Kind: report.MarkFailover, Name: "db\x1b2"}}
	f := func(s screen, want ...string) {
		t.Helper()
		got := s.plot(&series, "minute")
		contains(t, got, want...)
		for line := range strings.Lines(got) {
			if n := len([]rune(line)) - 1; s.width > 0 && strings.Contains(line, "most") && n > s.width {
				t.Errorf("a line has %d columns: %s", n, line)
			}
		}
		if strings.Contains(got, "\x1b2") {
			t.Errorf("a control character is written: %q", got)
		}
	}
	f(screen{blocks: true},
		"completed  ▁▂▃▅█  ▆█            27, most 8\n", "failed     ▁▁▁▁█  ▁▁            1, most 1\n",
		"late p50   ▁▁▁▁▁  ▁▁            1.0 ms to 1.0 ms\n", "late p99   ▁▁▃▄▅  ██            2.0 ms to 256.0 ms\n",
		"marks           ^\n", "failover: server db", "answers\n")
	f(screen{}, "completed  _.:=#  +#            27, most 8\n")
	f(screen{width: 50, blocks: true}, "completed  ▂▇█▆█      27, most 8\n",
		"A column has 2 minutes: what was counted in them, and the latest.\n")
}
