// Command bench measures what the developers of delaytask want to know beyond "delaytask bench": several processes, the
// service, the dashboard, large tables, restarts. README.md says what each figure means.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/pprof"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
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

// options are what the command takes, and what the measurements of this program want.
type options struct {
	bench.Options
	json, full, keep, cold bool
	rows, viewers, rate    int
	database, profile      string

	filled *bench.Database // with the table that people read; nil before a measurement wants it
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

// parse reads the arguments: a group of measurements, and flags.
func parse(args []string) (*options, error) {
	o := &options{}
	var only string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.DSN, "dsn", cmp.Or(os.Getenv("DELAYTASK_DSN"), sqlstore.DefaultDSN),
		"database: sqlite:PATH, or user:password@tcp(host:3306)/name")
	flags.BoolVar(&o.Quick, "quick", false, "fewer measurements, and shorter ones")
	flags.BoolVar(&o.full, "full", false, "with 10,000,000 rows in the large tables")
	flags.IntVar(&o.rows, "rows", 0, "rows of the large tables (default 1,000,000; 10,000,000 of ui)")
	flags.IntVar(&o.Repeats, "repeats", 0, "turns of each measurement (default 3, or as README.md says)")
	flags.StringVar(&only, "only", "", "measure these instead, by comma, as growth,restart")
	flags.BoolVar(&o.json, "json", false, "print JSON")
	flags.StringVar(&o.profile, "cpuprofile", "", "write a CPU profile of this process, for http of the service")
	flags.Float64Var(&o.Scale, "scale", 1, "make all workloads smaller, which makes the figures meaningless")
	flags.BoolVar(&o.keep, "keep", false, "ui: leave the filled database, and name it")
	flags.StringVar(&o.database, "database", "", "ui: take this database, or SQLite file, that -keep has left")
	flags.BoolVar(&o.cold, "cold", false, "ui: read each list, task and page of -database once")
	flags.IntVar(&o.viewers, "viewers", 100, "ui: dashboards that are open")
	flags.IntVar(&o.rate, "rate", 1000, "ui: tasks a second that run meanwhile")
	flags.Usage = func() {
		fmt.Fprintln(os.Stderr, "go -C bench run . [http|nodes|rollup|schedules|ui] [flags]")
		flags.PrintDefaults()
	}
	group := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		group, args = args[0], args[1:]
	}
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	if only != "" {
		o.Only = strings.Split(only, ",")
	} else if group != "" {
		o.Only = []string{group}
	}
	if o.cold {
		o.Only = []string{"cold"}
	}
	if o.rows == 0 && (o.full || group == "ui") {
		o.rows = 10 * million
	}
	o.rows = cmp.Or(o.rows, million)
	return o, o.check(flags.Args())
}

func (o *options) check(rest []string) error {
	name := o.database[strings.LastIndexByte(o.database, '/')+1:]
	switch {
	case len(rest) > 0:
		return fmt.Errorf("want one group of measurements, and then flags: %q", rest)
	case o.rows < 1 || o.viewers < 1 || o.rate < 1 || o.Repeats < 0 || o.Scale <= 0:
		return errors.New("rows, viewers, rate, repeats and scale must be more than 0")
	case o.Quick && o.full:
		return errors.New("a run is quick or full, not both")
	case o.keep && o.database != "":
		return errors.New("what -database names is kept anyway")
	case o.database != "" && !strings.HasPrefix(name, bench.Prefix):
		return fmt.Errorf("no benchmark has kept %q: names begin with %s", o.database, bench.Prefix)
	case o.cold && (o.database == "" || o.Repeats > 1):
		return errors.New("cold reads want the database that an earlier run has kept, and one turn")
	}
	return nil
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

// profiled writes a CPU profile until stop is called.
func profiled(file string) (stop func(), err error) {
	w, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	return func() { pprof.StopCPUProfile(); _ = w.Close() }, pprof.StartCPUProfile(w)
}
