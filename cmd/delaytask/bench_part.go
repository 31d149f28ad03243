package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/server/config"
)

// benchPart is a command that measures what bench leaves out: the same run, of the measurements whose names begin with
// the part's.
func (a *app) benchPart(part string, o *bench.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:  part,
		Args: wanted(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range o.Only {
				if name != part && !strings.HasPrefix(name, part+".") {
					return misusedf("--only: bench %s does not measure %q; it measures %s", part, name, benchPartList(part))
				}
			}
			c, err := a.settings(cmd)
			if err != nil {
				return err
			}
			o.DSN = c.DSN
			o.Logger = a.logger(config.Log{Level: "error"})
			if len(o.Only) == 0 {
				o.Only = []string{part}
			}
			return a.bench(cmd, *o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Quick, "quick", false, "each measurement shorter")
	flags.StringSliceVar(&o.Only, "only", nil, "measure these alone, as "+strings.Join(benchPartNames(part)[:2], ","))
	flags.Float64Var(&o.Scale, "scale", 1, "make all workloads smaller, which makes the figures meaningless")
	_ = flags.MarkHidden("scale") // the flag was added in the line above
	values(cmd, "only", benchPartNames(part)...)
	a.jsonFlag(cmd)
	return cmd
}

func benchPartNames(part string) (names []string) {
	for _, name := range bench.Names() {
		if strings.HasPrefix(name, part+".") {
			names = append(names, name)
		}
	}
	return names
}

func benchPartList(part string) string { return strings.Join(benchPartNames(part), ", ") }

// benchHTTPCommand measures the service.
func (a *app) benchHTTPCommand() *cobra.Command {
	var o bench.Options
	cmd := a.benchPart("http", &o)
	cmd.Short = "Measure the service: saves over HTTP, and long polls from due to received"
	cmd.Long = `Start the service in a process of its own, load it from this one, and show medians: how many tasks it saves a second, how soon
waiting clients have what is due, and what they cost while nothing is. docs/bench.md says what each figure means.

As bench does, it works in databases of its own, and nothing else should run on the machine meanwhile. It takes about five
minutes, --quick one.

Measurements: ` + benchPartList("http") + `.`
	cmd.Example = `  delaytask bench http --quick
  delaytask bench http --dsn 'user:password@tcp(127.0.0.1:3306)/test' --json | jq .http.pop
  delaytask bench http --only http.pop.5000 --cpuprofile service.pprof`
	flags := cmd.Flags()
	flags.IntVar(&o.Repeats, "repeats", 0, "turns of each measurement; figures are medians (default 3, and 1 for what takes long)")
	flags.StringVar(&o.ServiceProfile, "cpuprofile", "", "write a CPU profile of the service to the file, that of the last one measured")
	return cmd
}

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
