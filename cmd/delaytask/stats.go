package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
)

type statsView struct {
	Tag           string                     `json:"tag"`
	Counts        map[delaytask.Status]int64 `json:"counts"`
	OldestPending moment                     `json:"oldest_pending,omitzero"`
	Served        bool                       `json:"served"`
	Paused        bool                       `json:"paused"`
	Lateness      *latenessView              `json:"lateness_ms,omitempty"` // absent where nothing has run
}

type latenessView struct {
	Samples int     `json:"samples"`
	P50     float64 `json:"p50"`
	P95     float64 `json:"p95"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
}

func (a *app) statsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count tasks and show how punctual they are, per tag",
		Long: `Count the tasks of every tag by status, and show how late the first attempts of its newest completed tasks
started (at most 1,000 of them). It counts the whole table: for monitoring there are metrics.`,
		Example: `  delaytask stats
  delaytask stats --json | jq '.[] | select(.served | not) | .tag'`,
		Args: wanted(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onTasks(cmd, func(ctx context.Context, s *delaytask.Scheduler) error {
				stats, err := s.Stats(ctx)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(statsViews(stats))
				}
				return a.printStats(stats)
			})
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) printStats(stats []delaytask.TagStats) error {
	if len(stats) == 0 {
		return a.printf("There are no tasks, and no node serves a tag.\n")
	}
	t := newTable(a.stdout, "TAG", "PENDING", "EXECUTING", "COMPLETED", "FAILED", "CANCELLED", "LATE P50", "P95", "P99", "MAX",
		"OLDEST PENDING", "STATE")
	for _, s := range stats {
		count := func(status delaytask.Status) string { return grouped(int(s.Counts[status])) }
		late := func(d time.Duration) string {
			if s.Lateness.Samples == 0 {
				return ""
			}
			return lateness(d)
		}
		t.row(s.Tag, count(delaytask.Pending), count(delaytask.Executing), count(delaytask.Completed), count(delaytask.Failed),
			count(delaytask.Cancelled), late(s.Lateness.P50), late(s.Lateness.P95), late(s.Lateness.P99), late(s.Lateness.Max),
			moment(s.OldestPending).String(), tagState(s))
	}
	return t.flush()
}

func tagState(s delaytask.TagStats) string {
	state := []string{"served"}
	if !s.Served {
		state = []string{"nobody serves it"}
	}
	if s.Paused {
		state = append(state, "paused")
	}
	return strings.Join(state, ", ")
}

func statsViews(stats []delaytask.TagStats) []statsView {
	views := make([]statsView, len(stats))
	for i, s := range stats {
		views[i] = statsView{
			Tag: s.Tag, Counts: s.Counts, OldestPending: moment(s.OldestPending), Served: s.Served, Paused: s.Paused,
		}
		if l := s.Lateness; l.Samples > 0 {
			views[i].Lateness = &latenessView{
				Samples: l.Samples,
				P50:     milliseconds(l.P50), P95: milliseconds(l.P95), P99: milliseconds(l.P99), Max: milliseconds(l.Max),
			}
		}
	}
	return views
}
