// Command bench measures what the developers of delaytask want to know beyond "delaytask bench": several processes, the
// service, the dashboard, large tables, restarts. README.md says what each figure means.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/internal/testkit/usage"
	_ "github.com/delaytask/delaytask/sqlite"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := do(ctx, os.Args[1:], os.Stdout)
	cancel()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func do(ctx context.Context, args []string, out io.Writer) (err error) {
	if len(args) > 0 && args[0] == childArgument {
		return child.Serve(ctx, os.Stdin, out, play)
	}
	o, err := parse(args)
	if err != nil {
		return err
	}
	o.Progress = func(done, total int, next string) { fmt.Fprintf(os.Stderr, "%d of %d: %s\n", done, total, next) }
	if o.profile != "" && !strings.HasPrefix(strings.Join(o.Only, ","), "http") { // else the service is profiled
		stop, err := profiled(o.profile)
		if err != nil {
			return err
		}
		defer stop()
	}
	report, err := o.run(ctx)
	if report == nil {
		return err
	}
	if o.json {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return errors.Join(encoder.Encode(report), err)
	}
	return errors.Join(show(report, out), err)
}

// run takes the measurements, and says in the settings of the report what is not as the server has it.
func (o *options) run(ctx context.Context) (*bench.Report, error) {
	taken, all, unknown := usage.Stolen()
	report, err := bench.Run(ctx, o.measurements(), o.Options)
	if o.filled != nil && !o.keep && o.database == "" {
		err = errors.Join(err, o.filled.Drop())
	}
	if report == nil {
		return nil, err
	}
	set := func(name string, value any) { report.Meta.Settings[name] = fmt.Sprint(value) }
	set("rows", o.rows)
	if o.filled != nil {
		set("viewers", o.viewers)
		set("rate", o.rate)
		if o.keep || o.database != "" {
			set("database", o.filled.Name)
		}
	}
	if takenThen, allThen, err := usage.Stolen(); err == nil && unknown == nil {
		set("stolen_pct", fmt.Sprintf("%.2f", 100*float64(takenThen-taken)/float64(max(1, allThen-all))))
	}
	return report, err
}

// show prints a table.
func show(report *bench.Report, out io.Writer) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = io.WriteString(table, "FIGURE\tMEDIAN\tLOWEST\tHIGHEST\tOF\n")
	for _, l := range report.Lines {
		least, most := l.Spread()
		_, _ = fmt.Fprintf(table, "%s\t%v\t%v\t%v\t%s\n", l.Key, l.Value, least, most, l.About)
	}
	_ = table.Flush() // a builder takes all
	_, err := fmt.Fprint(out, report.Meta.Title(), "\n", text.String(), report.Meta.Notes())
	return err
}
