package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/test/system/chaos/fault"
)

type options struct {
	span    time.Duration // of the faults
	seed    uint64
	server  dbtest.Kind
	single  bool // of a group one member, the primary, is written
	workers int
	savers  int
	rate    int // of saves, a second, all savers together
	record  bool
	force   bool // record a tree that has changes
	keep    bool // the journals of a run without violations
	forget  bool // the journals of a run with violations
	in      string
	patient time.Duration
	only    string        // the faults that happen; "": all
	lasts   time.Duration // of each fault with an end; 0: as drawn
	share   int           // one of so many tasks has its history recorded
	ahead   time.Duration // of the server's clock
	slew    float64       // share by which that runs fast
	old     string        // commit of every other worker's program; "": this one
	disk    int           // MB of memory that are the server's disk; 0: the machine's
}

func parse(args []string, stderr io.Writer) (options, error) {
	var opts options
	var server string
	flags := flag.NewFlagSet("chaos", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.DurationVar(&opts.span, "for", time.Minute, "for how `long` faults happen")
	flags.Uint64Var(&opts.seed, "seed", 1, "fixes what happens, as far as processes let it")
	flags.StringVar(&server, "server", string(dbtest.MariaDB),
		"`kind` of the server: mariadb, mysql, galera, group, or primary, which is a group with one")
	flags.IntVar(&opts.workers, "workers", 4, "processes that run tasks")
	flags.IntVar(&opts.savers, "savers", 2, "processes that save tasks")
	flags.IntVar(&opts.rate, "rate", 0, "operations of all savers, a second; "+
		"one of 20 saves 50 tasks (default: 150; galera 100; group and primary 15)")
	flags.DurationVar(&opts.patient, "patience", 2*time.Minute,
		"how much `longer` than the bounds a machine with a queue may take")
	flags.BoolVar(&opts.record, "record", false, "append a line to test/lab/results/reliability.jsonl")
	flags.BoolVar(&opts.force, "force", false, "record also a tree with changes, and say so in the line")
	flags.BoolVar(&opts.keep, "keep", false, "leave the journals of a run without violations, too")
	flags.BoolVar(&opts.forget, "forget", false, "remove the journals of a run with violations, too")
	flags.StringVar(&opts.in, "in", "", "`folder` for journals and data (default: a temporary one)")
	flags.StringVar(&opts.only, "only", "", "the `faults` that happen, by their names, separated by commas")
	flags.DurationVar(&opts.lasts, "lasts", 0,
		"how `long` each fault lasts that is not over at once (default: drawn for each)")
	flags.IntVar(&opts.share, "histories", 8,
		"one of so `many` tasks has its history checked; all of them need memory in a long run")
	flags.IntVar(&opts.disk, "disk", 0,
		"`MB` of memory to make the server's disk of, so that it can be full; wants root")
	flags.DurationVar(&opts.ahead, "ahead", 0,
		"`how far` the server's clock is before this machine's, by libfaketime; only mariadb")
	flags.Float64Var(&opts.slew, "slew", 0,
		"the `share` by which the server's clock runs fast, such as 0.02, or slow, such as -0.02; only mariadb")
	flags.StringVar(&opts.old, "old", "", "the `commit` that every other worker is built from")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	opts.server, opts.single = dbtest.Kind(server), server == primary
	if opts.single {
		opts.server = dbtest.Group
	}
	if opts.rate == 0 {
		opts.rate = bearable(opts.server)
	}
	if err := opts.check(flags.Args()); err != nil {
		_, _ = fmt.Fprintln(stderr, "chaos:", err)
		return opts, err
	}
	return opts, nil
}

func (o *options) check(rest []string) error {
	switch {
	case len(rest) > 0:
		return fmt.Errorf("want flags or report, got %q", rest)
	case !slices.Contains([]dbtest.Kind{dbtest.MariaDB, dbtest.MySQL, dbtest.Galera, dbtest.Group}, o.server):
		return fmt.Errorf("no server %q can be killed: want mariadb, mysql, galera, group or primary", o.server)
	case o.disk > 0 && o.server.Cluster():
		return errors.New("the members of a cluster get no disk of their own")
	case o.wrongClock() && o.server != dbtest.MariaDB:
		return errors.New("only mariadb gets a clock of its own")
	case math.Abs(o.slew) > mostSlew:
		return fmt.Errorf("no clock is slewed by more than %v", mostSlew)
	case o.span < time.Second, o.patient < 0, o.lasts < 0, o.workers < 1, o.savers < 1, o.rate < o.savers, o.disk < 0,
		o.share < 1:
		return errors.New("want a second at least, a worker, a saver, a save of each a second, and a histories share")
	}
	for name := range strings.SplitSeq(o.only, ",") {
		known := func(k fault.Kind) bool { return k.Name == name && k.Happens(o.site()) }
		if o.only != "" && !slices.ContainsFunc(fault.Kinds, known) {
			return fmt.Errorf("there is no fault %q on %s", name, o.site())
		}
	}
	return nil
}

// mostSlew is what promise 5 allows for.
const mostSlew = 0.1

func (o *options) wrongClock() bool { return o.ahead != 0 || o.slew != 0 }

// bearable is the rate of operations a second that a server on two cores bears: no queue outlasts the faults. Members
// of a cluster do all work three times, on the same cores.
func bearable(server dbtest.Kind) int {
	switch server {
	case dbtest.Galera:
		return 100
	case dbtest.Group:
		return 15
	}
	return 150
}

// primary names a group whose primary the processes follow.
const primary = "primary"

func (o *options) kind() string {
	if o.single {
		return primary
	}
	return string(o.server)
}

func (o *options) site() fault.Site {
	if o.server.Cluster() {
		return fault.Members
	}
	return fault.OneServer
}
