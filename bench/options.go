package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// options are what the command takes, and what the measurements of this program want.
type options struct {
	bench.Options
	json, full, keep, cold bool
	rows, viewers, rate    int
	nodes, load, capacity  int
	database, profile      string
	dbRestart              string

	filled *bench.Database // with the table that people read; nil before a measurement wants it
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
	flags.IntVar(&o.nodes, "nodes", 30, "nodes.crowd, deploy, dbrestart, goodput: processes")
	flags.IntVar(&o.load, "load", 200, "nodes.crowd, deploy, dbrestart: tasks a second, all processes together")
	flags.IntVar(&o.capacity, "capacity", 0, "nodes.goodput: tasks a second that are 100 percent (default as measured)")
	flags.StringVar(&o.dbRestart, "db-restart", "",
		"nodes.dbrestart: shell command that restarts the server of -dsn, and ends when it answers")
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
	case o.rows < 1 || o.viewers < 1 || o.rate < 1 || o.nodes < 1 || o.load < 1 || o.Repeats < 0 || o.Scale <= 0:
		return errors.New("rows, viewers, rate, nodes, load, repeats and scale must be more than 0")
	case o.capacity < 0:
		return errors.New("capacity must not be negative")
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

const million = 1_000_000

// million is how many rows the tables have that show what a million of them costs: fewer where a run has less time or
// smaller tables.
func (o *options) million() int {
	if o.Quick {
		return min(o.rows, million/10)
	}
	return min(o.rows, million)
}
