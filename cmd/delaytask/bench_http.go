package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/config"
)

// benchHTTP begins the names of what bench http measures.
const benchHTTP = "http"

// benchHTTPCommand measures what bench leaves out: the same run, of measurements of its own.
func (a *app) benchHTTPCommand() *cobra.Command {
	var o bench.Options
	cmd := &cobra.Command{
		Use:   "http",
		Short: "Measure the service: saves over HTTP, and long polls from due to received",
		Long: `Start the service in a process of its own, load it from this one, and show medians: how many tasks it saves a second, how soon
waiting clients have what is due, and what they cost while nothing is. docs/bench.md says what each figure means.

As bench does, it works in databases of its own, and nothing else should run on the machine meanwhile. It takes about five
minutes, --quick one.

Measurements: ` + strings.Join(benchHTTPNames(), ", ") + `.`,
		Example: `  delaytask bench http --quick
  delaytask bench http --dsn 'user:password@tcp(127.0.0.1:3306)/test' --json | jq .http.pop
  delaytask bench http --only http.pop.5000 --cpuprofile service.pprof`,
		Args: wanted(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range o.Only {
				if name != benchHTTP && !strings.HasPrefix(name, benchHTTP+".") {
					return misusedf("--only: bench http does not measure %q; it measures %s", name, strings.Join(benchHTTPNames(), ", "))
				}
			}
			c, err := a.settings(cmd)
			if err != nil {
				return err
			}
			if err := checkTarget(c.DSN, create); err != nil {
				return err
			}
			o.DSN = c.DSN
			o.Logger = a.logger(config.Log{Level: "error"})
			if len(o.Only) == 0 {
				o.Only = []string{benchHTTP}
			}
			return a.bench(cmd, o)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&o.Quick, "quick", false, "each measurement shorter")
	flags.IntVar(&o.Repeats, "repeats", 0, "turns of each measurement; figures are medians (default 3, and 1 for what takes long)")
	flags.StringSliceVar(&o.Only, "only", nil, "measure these alone, as http.save,http.pop.1000")
	flags.StringVar(&o.ServiceProfile, "cpuprofile", "", "write a CPU profile of the service to the file, that of the last one measured")
	flags.Float64Var(&o.Scale, "scale", 1, "make all workloads smaller, which makes the figures meaningless")
	_ = flags.MarkHidden("scale") // the flag was added in the line above
	values(cmd, "only", benchHTTPNames()...)
	a.jsonFlag(cmd)
	return cmd
}

func benchHTTPNames() (names []string) {
	for _, name := range bench.Names() {
		if strings.HasPrefix(name, benchHTTP+".") {
			names = append(names, name)
		}
	}
	return names
}
