// Command delaytask manages delayed tasks from a shell: it creates the tables, saves tasks, shows, cancels, moves and
// retries them, pauses tags, and explains why a task has not run.
//
// It runs no tasks: that is the work of the services which import package delaytask. `delaytask demo` shows all of it
// in a few seconds, on an embedded database.
//
// The exit code is 0 when the job is done, 1 when it failed, and 2 when the command was used wrongly.
package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"syscall"
	_ "time/tzdata" // the image has no zones, nor has Windows

	_ "github.com/delaytask/delaytask/sqlite"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // after the first signal the next one kills
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program: tests call it as main does. It returns the exit code.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{
		stdin: stdin, stdout: stdout, stderr: stderr, environ: environ,
		watched: isTerminal(stderr), shown: isTerminal(stdout), interactive: isTerminal(stdin) && isTerminal(stderr),
	}
	a.screen, a.columns = screenOf(stdout, a.getenv), screenOf(stderr, a.getenv).width
	return a.run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	a.stdout, a.stderr = visible{clearing{a.stdout, &a.busy}}, visible{clearing{a.stderr, &a.busy}}
	root := a.rootCommand()
	root.SetArgs(args)
	command, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = errInterrupted
	}
	a.json = a.json || asksForJSON(args)
	a.printError(command, err)
	return exitCode(err)
}
