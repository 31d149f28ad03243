// Command attacks measures what "delaytask serve" takes while callers attack it: its memory, its health checks, and
// what an honest caller waits. It builds the command, and starts it anew for each attack, with a database of its own.
//
//	attacks                                            all attacks on SQLite, one by one and at once
//	attacks -only headers,pops -for 10s                two of them
//	attacks -dsn 'root@tcp(127.0.0.1:3306)/attacked'   on a server; tables of that database are made anew
//
// Run it by go -C test/system run ./attacks, on Linux. The attacker has one processor at most, and a low priority. It
// prints a line of a Markdown table for each attack, and exits with 1 when one of them is over a bound.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

var errOver = errors.New("an attack is over a bound")

const header = `| attack | memory, MB | readyz | healthz | plain server | save | pop | login | not served | bounds |
|---|---|---|---|---|---|---|---|---|---|`

type options struct {
	only [][]string // the attacks that are measured, some of them at once
	long time.Duration
	dsn  string
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	run := measureAll
	if os.Getenv(attackerVariable) != "" {
		run = beAttacker
	}
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		_, _ = fmt.Fprintln(os.Stderr, "attacks:", err)
		os.Exit(1)
	}
}

func parse(args []string) (o options, err error) {
	flags := flag.NewFlagSet("attacks", flag.ContinueOnError)
	only := flags.String("only", "",
		"`names` of attacks, separated by commas, or by + for those at once (default: each, then all at once)")
	flags.DurationVar(&o.long, "for", 20*time.Second, "how `long` an attack lasts")
	flags.StringVar(&o.dsn, "dsn", "", "`database` that is attacked (default: a SQLite file in memory)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	var all []string
	for _, a := range attacks {
		all = append(all, a.name)
	}
	chosen := cmp.Or(*only, strings.Join(all, ",")+","+strings.Join(all, "+"))
	for names := range strings.SplitSeq(chosen, ",") {
		o.only = append(o.only, strings.Split(names, "+"))
	}
	for _, name := range slices.Concat(o.only...) {
		if !slices.Contains(all, name) {
			return o, fmt.Errorf("there is no attack %q", name)
		}
	}
	return o, nil
}

func measureAll(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	program, remove, err := buildCommand(ctx)
	if err != nil {
		return err
	}
	defer remove()
	_, _ = fmt.Fprintln(os.Stdout, header)
	for _, names := range o.only {
		f, failed := measure(ctx, program, o, names)
		if failed != nil {
			return failed
		}
		_, _ = fmt.Fprintln(os.Stdout, f)
		if f.isOver() {
			err = errOver
		}
	}
	return err
}
