// Command delaytask looks after delayed tasks from a shell: it creates the tables, saves tasks, shows, cancels, moves and retries
// them, pauses tags, and says why a task has not run.
//
// It runs no tasks: that is the work of the services which import package delaytask. `delaytask demo` shows all of it in a few
// seconds, on an embedded database.
//
// The exit code is 0 when the job is done, 1 when it failed, and 2 when the command was used wrongly.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // from the first signal on, the next one kills
	os.Exit(run(ctx, os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// run is the whole program: tests call it as main does. It returns the exit code.
func run(ctx context.Context, args, environ []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{
		stdin: stdin, stdout: stdout, stderr: stderr, environ: environ,
		watched: isTerminal(stderr), interactive: isTerminal(stdin) && isTerminal(stderr),
	}
	return a.run(ctx, args)
}
