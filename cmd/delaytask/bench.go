package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/server/config"
)

func (a *app) benchCommand() *cobra.Command {
	var o bench.Options
	var profile string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast and punctual delaytask is here, beside the raw database",
		Long: `Measure what the database can do and what delaytask does with it, in turns on the same server and the same table
shape, and show medians. internal/bench/README.md says what each figure means.

It works in databases of its own, which it creates and drops: the user of --dsn must be allowed to, and what that database holds
is neither read nor changed. For SQLite it makes files in a temporary folder beside the one that is named. The default run takes
up to 15 minutes, --quick about one, --full up to 90 and 20 GB of disk. Nothing else should run on the machine meanwhile.

Measurements: ` + measurements() + `.`,
		Example: `  delaytask bench --quick
  delaytask bench --dsn 'user:password@tcp(127.0.0.1:3306)/test' --only raw,save --repeats 5
  delaytask bench --quick --json | jq .save`,
		Args: wanted(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return profiled(profile, func() error { return a.benchHere(cmd, o) })
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Quick, "quick", false, "the most important figures, in about a minute")
	flags.BoolVar(&o.Full, "full", false, "with 10,000,000 rows in the large tables")
	flags.IntVar(&o.Rows, "rows", 0, "rows of the large tables (default 1,000,000, with --full 10,000,000)")
	flags.IntVar(&o.Repeats, "repeats", 0,
		"turns of each measurement; figures are medians (default 3, and 1 for what takes long)")
	flags.StringSliceVar(&o.Only, "only", nil, "measure these instead, as raw,save,drain")
	flags.StringVar(&profile, "cpuprofile", "", "write a CPU profile of this process to the file, for go tool pprof")
	flags.Float64Var(&o.Scale, "scale", 1, "make all workloads smaller, which makes the figures meaningless")
	_ = flags.MarkHidden("scale") // the flag was added in the line above
	values(cmd, "only", bench.Names()...)
	cmd.AddCommand(a.benchChildCommand(), a.benchHTTPCommand(), a.benchNodesCommand(),
		a.benchRollupCommand(), a.benchUICommand())
	return a.withJSON(cmd)
}

// profiled writes a CPU profile of what f does, when a file is named.
func profiled(file string, f func() error) error {
	if file == "" {
		return f()
	}
	w, err := os.Create(file)
	if err != nil {
		return misused(fmt.Errorf("--cpuprofile: %w", err))
	}
	if err := pprof.StartCPUProfile(w); err != nil {
		return errors.Join(err, w.Close())
	}
	err = f()
	pprof.StopCPUProfile()
	return errors.Join(err, w.Close())
}

// measurements lists what can be measured, in lines of the width of a help text.
func measurements() string {
	var list strings.Builder
	width := len("Measurements: ")
	for i, name := range bench.Names() {
		switch {
		case i == 0:
		case width+len(name) > 110:
			list.WriteString(",\n")
			width = 0
		default:
			list.WriteString(", ")
		}
		list.WriteString(name)
		width += len(name) + 2
	}
	return list.String()
}

// benchChildCommand is the process that bench starts for a measurement that needs one of its own.
func (a *app) benchChildCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "child",
		Short:  "A part of a measurement",
		Hidden: true,
		Args:   wanted(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return bench.Child(cmd.Context(), a.stdin, a.stdout)
		},
	}
}

// benchHere measures on the server of the settings.
func (a *app) benchHere(cmd *cobra.Command, o bench.Options) error {
	c, err := a.settings(cmd)
	if err != nil {
		return err
	}
	o.DSN = c.DSN
	o.Logger = a.logger(config.Log{Level: "error"})
	return a.bench(cmd, o)
}

// bench prints also what was measured before an error.
func (a *app) bench(cmd *cobra.Command, o bench.Options) error {
	for flag, value := range map[string]float64{"rows": float64(o.Rows), "repeats": float64(o.Repeats),
		"scale": o.Scale, "viewers": float64(o.Viewers), "rate": float64(o.Rate)} {
		if cmd.Flags().Changed(flag) && value <= 0 {
			return misusedf("--%s: want more than 0", flag)
		}
	}
	if err := o.Check(); err != nil {
		return misused(err)
	}
	bar := a.newBar(0, time.Now)
	o.Progress = func(p bench.Progress) { bar.show(p.Done.Seconds(), p.Total.Seconds(), benchStep(p)) }
	o.Child = []string{"bench", "child"}
	report, err := bench.Run(cmd.Context(), o)
	bar.end()
	if errors.Is(err, context.Canceled) {
		if errors.Is(err, bench.ErrLeftBehind) {
			a.note("delaytask: %s\n", sentence(err)) // an interruption itself is not reported
		}
		return err
	}
	if report == nil {
		return err
	}
	if a.json {
		return errors.Join(a.printJSON(report), err)
	}
	return errors.Join(a.printBench(report), err)
}

// benchPart is a command for measurements that bench leaves out: the same run, of those whose names begin with the
// part's.
func (a *app) benchPart(part string, o *bench.Options) *cobra.Command {
	cmd := &cobra.Command{
		Use:  part,
		Args: wanted(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range o.Only {
				if name != part && !strings.HasPrefix(name, part+".") {
					return misusedf("--only: bench %s does not measure %q; it measures %s", part, name,
						benchPartList(part))
				}
			}
			if len(o.Only) == 0 {
				o.Only = []string{part}
			}
			return a.benchHere(cmd, *o)
		},
	}
	names := benchPartNames(part)
	flags := cmd.Flags()
	flags.BoolVar(&o.Quick, "quick", false, "each measurement shorter")
	flags.StringSliceVar(&o.Only, "only", nil, "measure these alone, as "+strings.Join(names[:min(2, len(names))], ","))
	flags.Float64Var(&o.Scale, "scale", 1, "make all workloads smaller, which makes the figures meaningless")
	_ = flags.MarkHidden("scale") // the flag was added in the line above
	values(cmd, "only", names...)
	return a.withJSON(cmd)
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
waiting clients have what is due, and what they cost while nothing is. internal/bench/README.md says what each figure means.

As bench does, it works in databases of its own, and nothing else should run on the machine meanwhile. It takes about five
minutes, --quick one.

Measurements: ` + benchPartList("http") + `.`
	cmd.Example = `  delaytask bench http --quick
  delaytask bench http --dsn 'user:password@tcp(127.0.0.1:3306)/test' --json | jq .http.pop
  delaytask bench http --only http.pop.5000 --cpuprofile service.pprof`
	flags := cmd.Flags()
	flags.IntVar(&o.Repeats, "repeats", 0,
		"turns of each measurement; figures are medians (default 3, and 1 for what takes long)")
	flags.StringVar(&o.ServiceProfile, "cpuprofile", "",
		"write a CPU profile of the service to the file, that of the last one measured")
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
internal/bench/README.md says what each figure means.

As bench does, it works in databases of its own, and nothing else should run on the machine meanwhile. It takes about four
minutes, --quick two.

Measurements: ` + benchPartList("nodes") + `.`
	cmd.Example = `  delaytask bench nodes --quick
  delaytask bench nodes --dsn 'user:password@tcp(127.0.0.1:3306)/test' --json | jq .nodes
  delaytask bench nodes --only nodes.rolling`
	cmd.Flags().IntVar(&o.Repeats, "repeats", 0,
		"turns of each measurement; figures are medians (default 5, and 1 for what takes long)")
	return cmd
}

// rollupTurns is how many pairs there are: what they differ by says how far their median is to be trusted.
const rollupTurns = 7

// benchRollupCommand measures what results over time cost.
func (a *app) benchRollupCommand() *cobra.Command {
	o := bench.Options{Turns: rollupTurns}
	cmd := a.benchPart("rollup", &o)
	cmd.Short = "Measure what results and lateness over time cost saves and tasks"
	cmd.Long = `Measure saves, and tasks that are due at the start, in pairs: without and with 600 times the work that a process does for results
and lateness over time. Show by how many percent the work that a process does once slows them. internal/bench/README.md
says what each figure means, and what is counted.

As bench does, it works in databases of its own, and nothing else should run on the machine meanwhile. It takes about three
minutes, --quick one.

Measurements: ` + benchPartList("rollup") + `.`
	cmd.Example = `  delaytask bench rollup --quick
  delaytask bench rollup --dsn 'user:password@tcp(127.0.0.1:3306)/test' --repeats 15`
	cmd.Flags().IntVar(&o.Repeats, "repeats", 0, "pairs of each measurement; figures are medians (default 7)")
	return cmd
}

// uiRows is how many rows the table has that people read.
const uiRows = 10_000_000

// benchUICommand measures what people ask of a large table.
func (a *app) benchUICommand() *cobra.Command {
	o := bench.Options{Rows: uiRows}
	cmd := a.benchPart("ui", &o)
	cmd.Short = "Measure reads of a large table: lists, counts, single tasks, beside tasks that run"
	cmd.Long = `Fill a table with completed, pending and failed tasks of 100 tags, and show what 100 open dashboards cost, how long lists,
counts and reads of single tasks take, both beside tasks that run, and how late these are. internal/bench/README.md says
what each figure means.

As bench does, it works in databases of its own, and nothing else should run on the machine meanwhile. To fill 10,000,000
rows takes about ten minutes: --keep leaves them, and --database takes them for another run within a day. --cold reads each
once; restart the server just before.

Measurements: ` + benchPartList("ui") + `.`
	cmd.Example = `  delaytask bench ui --rows 1000000
  delaytask bench ui --dsn 'user:password@tcp(127.0.0.1:3306)/test' --json | jq .ui
  delaytask bench ui --cold --database delaytask_bench_4kq7xw2m5c_2`
	var cold bool
	measure := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !cold {
			return measure(cmd, args)
		}
		o.Only = []string{"cold"}
		return a.benchHere(cmd, o)
	}
	cmd.Flags().IntVar(&o.Rows, "rows", uiRows, "rows of the table")
	cmd.Flags().IntVar(&o.Repeats, "repeats", 0,
		"turns of each measurement; figures are medians (default 3, and 1 for what takes long)")
	cmd.Flags().IntVar(&o.Viewers, "viewers", 0, "dashboards that are open (default 100)")
	cmd.Flags().IntVar(&o.Rate, "rate", 0, "tasks a second that run meanwhile (default 1,000)")
	cmd.Flags().BoolVar(&o.Keep, "keep", false, "leave the filled database, and name it")
	cmd.Flags().StringVar(&o.Database, "database", "", "take this database, or SQLite file, that --keep has left")
	cmd.Flags().BoolVar(&cold, "cold", false, "read each list, task and page of --database once")
	cmd.MarkFlagsMutuallyExclusive("keep", "database")
	cmd.MarkFlagsMutuallyExclusive("cold", "only")
	return cmd
}
