package main

import (
	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/bench"
)

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
