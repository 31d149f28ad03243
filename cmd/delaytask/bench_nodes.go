package main

import (
	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/bench"
)

// nodesTurns is how often drains are measured by one process and by three, in turns: their ratio is one of medians.
const nodesTurns = 5

// benchNodesCommand measures what several processes on one database do.
func (a *app) benchNodesCommand() *cobra.Command {
	o := bench.Options{Turns: nodesTurns}
	cmd := a.benchPart("nodes", &o)
	cmd.Short = "Measure several processes on one database: throughput, shares, and a rolling restart"
	cmd.Long = `Start three processes on one database and show medians: what they complete of a backlog at a cold start, and
of tasks that fall due when they know of each other, beside what one process does; how evenly they share; how
many rows they try to claim for nothing; and how late tasks are while the processes are restarted in turn.
docs/bench.md says what each figure means.

As bench does, it works in databases of its own, and nothing else should run on the machine meanwhile. It takes about four
minutes, --quick two.

Measurements: ` + benchPartList("nodes") + `.`
	cmd.Example = `  delaytask bench nodes --quick
  delaytask bench nodes --dsn 'user:password@tcp(127.0.0.1:3306)/test' --json | jq .nodes
  delaytask bench nodes --only nodes.rolling`
	cmd.Flags().IntVar(&o.Repeats, "repeats", 0, "turns of each measurement; figures are medians (default 5, and 1 for what takes long)")
	return cmd
}
