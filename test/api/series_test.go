package api

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
)

// A process writes what it has counted when it stops, at the latest. The library and the service show it.
func TestSeriesShowsWhatProcessesHaveCounted(t *testing.T) {
	t.Parallel()
	d := dbtest.New(t, dbtest.SQLite)
	before := time.Now()
	worker := open(t, d)
	start(t, worker, "a", func(_ context.Context, task *delaytask.Task) error {
		if task.Key == "bad" {
			return processor.Permanent(errors.New("boom"))
		}
		return nil
	})
	settled(t, worker, save(t, worker, "a", 0))
	settled(t, worker, save(t, worker, "a", 0, delaytask.WithKey("bad")))
	servertest.OK(t, worker.Pause(t.Context(), "b"))
	stop(t, worker)
	for name, s := range map[string]processor.Scheduler{"library": open(t, d), "client": dial(t, serveOn(t, d))} {
		for tag, want := range map[string]report.SeriesPoint{
			"": {Completed: 1, Failed: 1, Started: 2}, "a": {Completed: 1, Failed: 1, Started: 2}, "b": {},
		} {
			series, err := s.Series(t.Context(), report.SeriesFilter{Tag: tag})
			servertest.OK(t, err)
			var got report.SeriesPoint
			for _, p := range series.Points { // of two minutes, where one has just ended
				if p.Start.Before(before.Truncate(time.Minute)) || p.Max <= 0 || p.P50 > p.P99 || p.P99 > p.Max {
					t.Errorf("%s: a point is %+v", name, p)
				}
				got.Completed += p.Completed
				got.Failed += p.Failed
				got.Started += p.Started
			}
			if got != want || series.Span != time.Minute {
				t.Errorf("%s: of tag %q %+v, want %+v", name, tag, series, want)
			}
			var kinds []report.MarkKind
			for _, m := range series.Marks {
				kinds = append(kinds, m.Kind)
			}
			paused := slices.Contains(kinds, report.MarkPaused)
			if !slices.Contains(kinds, report.MarkJoined) || !slices.Contains(kinds, report.MarkLeft) ||
				paused != (tag != "a") {
				t.Errorf("%s: the marks of tag %q are %+v", name, tag, series.Marks)
			}
		}
		long, err := s.Series(t.Context(), report.SeriesFilter{Tag: "a", Since: 7 * 24 * time.Hour})
		servertest.OK(t, err)
		if n := len(long.Points); long.Span != time.Hour || n == 0 || long.Points[n-1].Completed != 1 {
			t.Errorf("%s: of a week %+v", name, long)
		}
	}
}

func TestSeriesRefusesTimesThatAreNone(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		at := time.Now()
		for _, f := range []report.SeriesFilter{
			{Since: -time.Second}, {Since: time.Hour, From: at.Add(-time.Hour)}, {From: at.Add(time.Hour)},
			{From: at.Add(-time.Minute), To: at.Add(-time.Hour)},
		} {
			if _, err := s.Series(t.Context(), f); !errors.Is(err, delaytask.ErrInvalidOption) {
				t.Errorf("%+v: %v, want %v", f, err, delaytask.ErrInvalidOption)
			}
		}
		if _, err := s.Series(t.Context(), report.SeriesFilter{Tag: "no tag"}); !errors.Is(err,
			delaytask.ErrInvalidTag) {
			t.Errorf("%v, want %v", err, delaytask.ErrInvalidTag)
		}
	})
}
