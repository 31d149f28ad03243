package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/bench"
)

func (a *app) benchCommand() *cobra.Command {
	var o bench.Options
	names := bench.Names(bench.Measurements)
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast and punctual delaytask is here, beside the raw database",
		Long: `Measure what the database can do and what delaytask does with it, in turns on the same server and the
same table shape, and show medians. internal/bench/README.md says what each figure means.

It works in databases of its own, which it creates and drops: the user of --dsn must be allowed to, and what that
database holds is neither read nor changed. For SQLite it makes files in a temporary folder beside the one that is
named. The default run takes about five minutes, --quick one. Nothing else should run on the machine meanwhile.

Measurements: ` + strings.Replace(strings.Join(names, ", "), " lateness", "\nlateness", 1) + `.`,
		Example: `  delaytask bench --quick
  delaytask bench --dsn 'user:password@tcp(127.0.0.1:3306)/test' --only raw,save --repeats 5
  delaytask bench --quick --json | jq .save`,
		Args: wanted(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("repeats") && o.Repeats < 1 {
				return misusedf("--repeats: want more than 0")
			}
			if o.Budget && len(o.Only) > 0 && !slices.Contains(o.Only, bench.Drain.Name) {
				return misusedf("--budget: is of the drain; add it to --only")
			}
			c, err := a.settings(cmd)
			if err != nil {
				return err
			}
			o.DSN = c.DSN
			return a.bench(cmd.Context(), o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Quick, "quick", false, "the most important figures, in about a minute")
	flags.IntVar(&o.Repeats, "repeats", 0,
		"turns of each measurement; figures are medians (default 3, and 1 for what takes long)")
	flags.StringSliceVar(&o.Only, "only", nil, "measure these instead, as raw,save,drain")
	flags.BoolVar(&o.Budget, "budget", false, "drain: also where the time of a task goes, in microseconds")
	flags.Float64Var(&o.Scale, "scale", 1, "make all workloads smaller, which makes the figures meaningless")
	_ = flags.MarkHidden("scale") // the flag was added in the line above
	values(cmd, "only", names...)
	return a.withJSON(cmd)
}

// bench prints also what was measured before an error.
func (a *app) bench(ctx context.Context, o bench.Options) error {
	bar := a.newBar(0, false, time.Now)
	o.Progress = func(done, total int, next string) { bar.show(float64(done), float64(total), next) }
	report, err := bench.Run(ctx, bench.Measurements, o)
	bar.end()
	switch {
	case errors.Is(err, bench.ErrInvalidOptions):
		return misused(err)
	case errors.Is(err, context.Canceled):
		if errors.Is(err, bench.ErrLeftBehind) {
			a.note("delaytask: %s\n", sentence(err)) // an interruption itself is not reported
		}
		return err
	case report == nil:
		return err
	case a.json:
		return errors.Join(a.printJSON(report), err)
	}
	return errors.Join(a.printBench(report), err)
}

func (a *app) printBench(r *bench.Report) error {
	if err := a.printf("%s\n", r.Meta.Title()); err != nil {
		return err
	}
	t := a.newTable("FIGURE", "MEDIAN", "LOWEST", "HIGHEST", "OF").mayCut(4)
	for _, l := range r.Lines {
		var least, most string
		if len(l.Turns) > 1 {
			lowest, highest := l.Spread()
			least, most = benchNumber(lowest), benchNumber(highest)
		}
		t.row(l.Key, benchNumber(l.Value), least, most, l.About)
	}
	return errors.Join(t.flush(), a.printf("%s", r.Meta.Notes()))
}

func benchNumber(value float64) string {
	if value == math.Trunc(value) {
		return grouped(int(value))
	}
	return strconv.FormatFloat(value, 'f', -1, 64)
}
