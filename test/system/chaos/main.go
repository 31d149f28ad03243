// Command chaos runs real processes on a real database, hurts them with real signals and a bad network, and judges from
// their journals whether the invariants held.
//
//	chaos -for 60s -seed 7               a run on MariaDB, with a private server that it kills
//	chaos -for 10m -server mysql -record the same on MySQL, and a line in test/lab/results/reliability.jsonl
//	chaos -server galera                 on three members (or group, or primary: a group that writes to one)
//	chaos report                         make the tables of test/lab/results/reliability.md from those lines
//
// Run it by go -C test/system run ./chaos.
//
// It exits with 1 when an invariant was violated, and with 3 when the run could not be judged. Then the journals stay,
// and of a run that could not be judged the server's data and log too. It prints where. "go run ./test/lab judge" reads
// the journal named all.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/lifecycle/child"
	"github.com/delaytask/delaytask/test/lab/record"
	"github.com/delaytask/delaytask/test/system/chaos/fleet"
	"github.com/delaytask/delaytask/test/system/chaos/ledger"
	"github.com/delaytask/delaytask/test/system/chaos/role"
)

const (
	exitViolated = 1
	exitWrongUse = 2
	exitUnjudged = 3
)

var errViolated = errors.New("an invariant was violated")

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if len(os.Args) == 2 && os.Args[1] == fleet.ChildCommand {
		os.Exit(childMain(ctx))
	}
	context.AfterFunc(ctx, cancel) // a second signal kills the program: faults may take long to end
	os.Exit(parentMain(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func childMain(ctx context.Context) int {
	if err := child.Serve(ctx, os.Stdin, os.Stdout, role.Serve); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		return exitUnjudged
	}
	return 0
}

func parentMain(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) == 1 && args[0] == "report" {
		root, err := record.Root(ctx)
		if err == nil {
			err = ledger.Runs.Report(root)
		}
		return exitCode(stderr, err)
	}
	opts, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return exitWrongUse
	}
	if err := mysql.SetLogger(&mysql.NopLogger{}); err != nil { // connections are lost here on purpose
		return exitCode(stderr, err)
	}
	return exitCode(stderr, campaign(ctx, opts, stdout, stderr))
}

func exitCode(stderr io.Writer, err error) int {
	if err == nil {
		return 0
	}
	_, _ = fmt.Fprintln(stderr, "chaos:", err)
	if errors.Is(err, errViolated) {
		return exitViolated
	}
	return exitUnjudged
}
