package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/dbtest"
)

// proof shows one thing on one database.
type proof struct {
	name  string
	limit time.Duration // after which something hangs
	show  func(context.Context, *trial) error
}

var proofs = []proof{
	{"punctual", 2 * time.Minute, punctual},
	{"crash", 3 * time.Minute, crash},
	{"memory", 15 * time.Minute, memory},
	{"other", 3 * time.Minute, other},
	{"idle", 2 * time.Minute, idle},
	{"outage", 6 * time.Minute, outage},
	{"service", 2 * time.Minute, serviceProof},
}

type options struct {
	kinds  []dbtest.Kind // empty: all that are found
	proofs []proof
	quick  bool
	json   bool
}

// parse says on stderr what is wrong.
func parse(args []string, stderr io.Writer) (options, error) {
	var opts options
	flags := flag.NewFlagSet("proof", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.Func("db", "comma-separated `kinds` of sqlite, mariadb, mysql (default: all that are found)", func(list string) error {
		for name := range strings.SplitSeq(list, ",") {
			kind := dbtest.Kind(name)
			if !slices.Contains([]dbtest.Kind{dbtest.SQLite, dbtest.MariaDB, dbtest.MySQL}, kind) {
				return fmt.Errorf("there is no database %q", name)
			}
			opts.kinds = append(opts.kinds, kind)
		}
		return nil
	})
	flags.Func("run", "comma-separated `proofs` of punctual, crash, memory, other, idle, outage, service (default: all)", func(list string) error {
		for name := range strings.SplitSeq(list, ",") {
			i := slices.IndexFunc(proofs, func(p proof) bool { return p.name == name })
			if i < 0 {
				return fmt.Errorf("there is no proof %q", name)
			}
			opts.proofs = append(opts.proofs, proofs[i])
		}
		return nil
	})
	flags.BoolVar(&opts.quick, "quick", false, "a tenth of the tasks")
	flags.BoolVar(&opts.json, "json", false, "print JSON instead of tables")
	if err := flags.Parse(args); err != nil {
		return opts, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("want flags only, got %q", flags.Args())
		_, _ = fmt.Fprintln(stderr, err)
		return opts, err
	}
	if opts.proofs == nil {
		opts.proofs = proofs
	}
	return opts, nil
}
