// Command proof shows the promises of delaytask with figures, on SQLite and on every kind of MySQL server that is found (see
// internal/dbtest). It uses the library as any program would, and judges by clocks and records of its own.
//
//	go run ./test/proof                               everything; takes some minutes
//	go run ./test/proof -quick                        the same with a tenth of the tasks
//	go run ./test/proof -db mariadb -run crash,other  a part of it
//
// It prints one table for each server, progress on stderr, and exits with 1 when a promise is broken or could not be tried. A
// figure that has only an aim, such as the lateness in milliseconds, depends on the machine and breaks nothing.
//
// The server must run on this machine: what is early is told by the machine's own clock.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/delaytask/delaytask/internal/dbtest"
)

const (
	exitBroken   = 1
	exitWrongUse = 2
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if len(os.Args) == 2 && os.Args[1] == childCommand {
		os.Exit(childMain(ctx))
	}
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	opts, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return exitWrongUse
	}
	reports, err := prove(ctx, opts, stdout, stderr)
	if opts.json {
		err = errors.Join(err, writeJSON(stdout, reports))
	}
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "proof:", err)
		return exitBroken
	}
	for _, r := range reports {
		if !r.kept() {
			return exitBroken
		}
	}
	return 0
}

// prove runs the proofs on one database after the other, so that none disturbs another, and shows each table when it is complete.
func prove(ctx context.Context, opts options, stdout, stderr io.Writer) (reports []report, err error) {
	sources, err := dbtest.Sources(opts.kinds...)
	defer func() { err = errors.Join(err, dbtest.Close()) }()
	if err != nil {
		return nil, err
	}
	for _, source := range sources {
		r, err := proveOn(ctx, source, opts, stderr)
		reports = append(reports, r)
		if err == nil && !opts.json {
			err = r.write(stdout)
		}
		if err != nil {
			return reports, err
		}
	}
	return reports, nil
}

func proveOn(ctx context.Context, source dbtest.Source, opts options, stderr io.Writer) (report, error) {
	r := report{Database: string(source.Kind)}
	for _, p := range opts.proofs {
		t := &trial{proof: p.name, quick: opts.quick, progress: stderr}
		if err := r.show(ctx, source, t, p); err != nil {
			return r, err
		}
	}
	return r, nil
}

// show gives a proof an empty database of its own. An error of the proof is a line of the report, and the next one is tried.
func (r *report) show(ctx context.Context, source dbtest.Source, t *trial, p proof) (err error) {
	db, drop, err := source.Create(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drop()) }()
	t.db = db
	if r.Server, err = describe(ctx, db); err != nil {
		return err
	}
	err = t.run(ctx, p)
	if ctx.Err() != nil {
		return context.Cause(ctx) // interrupted, which says nothing about the promise
	}
	if err != nil {
		t.add("could not be shown", strings.ReplaceAll(err.Error(), "\n", "; "), "", broken)
	}
	r.Results = append(r.Results, t.results...)
	return nil
}
