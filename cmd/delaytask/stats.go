package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

func (a *app) statsCommand() *cobra.Command {
	var over seriesFlags
	var limit int
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Count tasks and show how punctual they are, per tag or over time",
		Long: `Count the tasks of every tag by status, and show how late the first attempts of its newest completed
tasks started (at most 1,000 of them, fewer where there are many tags). It counts up to 10,000 tasks of a tag and
status, and up to 30,000 in all: "10,000+" says that there are more. Of many tags it shows those whose oldest pending
task is due first, and with --json all. For monitoring there are metrics.

With --since or --tag, show results and lateness over time instead, and what may explain them: by the minute for the
last 6 h, by the hour for 30 days. That reads few rows.`,
		Example: `  delaytask stats
  delaytask stats --json | jq '.items[] | select(.served | not) | .tag'
  delaytask stats --since 1h
  delaytask stats --since 7d --tag order.close`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if limit < 1 {
				return misusedf("--limit %d: want 1 or more", limit)
			}
			if over.given(cmd) {
				return a.showSeries(cmd, &over)
			}
			return a.onTasks(cmd, reads, func(ctx context.Context, s *scheduler.Scheduler) error {
				stats, err := a.view().Stats(ctx)
				if err != nil {
					return err
				}
				if a.json {
					return a.printJSON(list[wire.TagStats]{Items: wire.FromStats(stats).Tags})
				}
				stats, left := listing.LongestDue(stats, limit, oldestPending)
				if err := a.printStats(stats); err != nil {
					return err
				}
				a.leaveOut(left, "tag")
				return nil
			})
		},
	}
	over.addFlags(cmd)
	tagLimit(cmd, &limit)
	return a.withJSON(cmd)
}

// tagLimit adds the flag that bounds a table of tags.
func tagLimit(cmd *cobra.Command, limit *int) {
	cmd.Flags().IntVar(limit, "limit", 100, "at most this many tags; it says when there are more")
}

// leaveOut says how many rows a table leaves out.
func (a *app) leaveOut(n int, noun string) {
	if n > 0 {
		a.note("%s not shown: add --limit or --json.\n", counted(n, "more "+noun))
	}
}

func oldestPending(s *report.TagStats) time.Time { return s.OldestPending }

func (a *app) printStats(stats []report.TagStats) error {
	if len(stats) == 0 {
		return a.printf("There are no tasks, and no node serves a tag.\n")
	}
	t := a.newTable("TAG", "PENDING", "EXECUTING", "COMPLETED", "FAILED", "CANCELLED", "LATE P50", "P95", "P99",
		"MAX", "OLDEST PENDING", "STATE").mayCut(0)
	for _, s := range stats {
		count := func(status delaytask.Status) string {
			n := grouped(int(s.Counts[status]))
			if slices.Contains(s.Capped, status) {
				n += "+"
			}
			return n
		}
		late := func(d time.Duration) string {
			if s.Lateness.Samples == 0 {
				return ""
			}
			return lateness(d)
		}
		t.row(s.Tag, count(delaytask.Pending), count(delaytask.Executing), count(delaytask.Completed),
			count(delaytask.Failed), count(delaytask.Cancelled), late(s.Lateness.P50), late(s.Lateness.P95),
			late(s.Lateness.P99), late(s.Lateness.Max), moment(s.OldestPending), tagState(s))
		if !s.Served || s.Paused {
			t.paint(11, yellow)
		}
	}
	return t.flush()
}

func tagState(s report.TagStats) string {
	state := []string{"served"}
	if !s.Served {
		state = []string{"unserved"}
	}
	if s.Paused {
		state = append(state, "paused")
	}
	return strings.Join(state, ", ")
}

func (a *app) nodesCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "nodes",
		Short: "List the processes that share the database",
		Long: `List the processes that share the database, with the tags that each serves and its share of their tasks.
One that died is listed as silent until its number is needed. Its share passes to the others 2 s after its last
heartbeat; one that leaves passes it on at once.`,
		Example: `  delaytask nodes
  delaytask nodes --json | jq '.items[] | select(.state == "alive")'
  delaytask nodes --json | jq '.items[] | {number, shares}'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onTasks(cmd, reads, func(ctx context.Context, s *scheduler.Scheduler) error {
				nodes, _, err := a.view().Nodes(ctx)
				if err != nil {
					return err
				}
				nodes = slices.DeleteFunc(nodes, isThisProcess)
				if a.json {
					return a.printJSON(list[wire.Node]{Items: wire.FromNodes(nodes).Nodes})
				}
				return a.printNodes(nodes)
			})
		},
	})
}

// isThisProcess reports whether the node is this command itself, which is left out.
func isThisProcess(n report.Node) bool {
	return n.PID == os.Getpid() && n.Name == commandNode
}

func (a *app) printNodes(nodes []report.Node) error {
	if len(nodes) == 0 {
		return a.printf("No process shares this database.\n")
	}
	t := a.newTable("NUMBER", "NAME", "PID", "ADDRESS", "VERSION", "STATE", "HEARTBEAT", "WAKE", "SHARES").mayCut(1, 8)
	for _, n := range wire.FromNodes(nodes).Nodes {
		t.row(strconv.Itoa(n.Number), n.Name, strconv.Itoa(n.PID), n.Address, n.Version, n.State,
			moment(n.Heartbeat.Std()), wakeUps(n), shares(n))
	}
	return t.flush()
}

// wakeUps formats where a node is told of tasks, and from where it cannot be.
func wakeUps(n wire.Node) string {
	if len(n.UnreachableFrom) == 0 {
		return n.Wake
	}
	return fmt.Sprintf("%s, unreachable from %s", n.Wake, strings.Trim(fmt.Sprint(n.UnreachableFrom), "[]"))
}

// shares formats each tag with the node's share of it.
func shares(n wire.Node) string {
	texts := make([]string, len(n.Shares))
	for i, share := range n.Shares {
		position := "none"
		if share.Position > 0 {
			position = strconv.Itoa(share.Position)
		}
		texts[i] = fmt.Sprintf("%s (%s of %d)", share.Tag, position, share.Total)
	}
	return strings.Join(texts, ", ")
}
