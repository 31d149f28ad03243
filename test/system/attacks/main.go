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
	only []string
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
	only := flags.String("only", "", "`names` of attacks, separated by commas (default: all)")
	flags.DurationVar(&o.long, "for", 20*time.Second, "how `long` an attack lasts")
	flags.StringVar(&o.dsn, "dsn", "", "`database` that is attacked (default: a SQLite file in memory)")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	for _, a := range attacks {
		o.only = append(o.only, a.name)
	}
	if *only != "" {
		o.only = strings.Split(*only, ",")
	}
	for _, name := range o.only {
		if !slices.ContainsFunc(attacks, func(a attack) bool { return a.name == name }) {
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
	rounds := [][]string{}
	for _, name := range o.only {
		rounds = append(rounds, []string{name})
	}
	if len(o.only) > 1 {
		rounds = append(rounds, o.only)
	}
	for _, names := range rounds {
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
