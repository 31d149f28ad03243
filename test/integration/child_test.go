//go:build unix

package integration

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// childDSN makes the test binary a child on that database.
const childDSN = "DELAYTASK_TEST_CHILD_DSN"

// childPool makes the child use an application's pool with these parameters.
const childPool = "DELAYTASK_TEST_CHILD_POOL"

// childTTR is the lease of tasks that a child holds until it is killed.
const childTTR = 2 * time.Second

// beChild handles commands from standard input, one a line, until it ends, and then stops:
//
//	save TAG MILLISECONDS   → saved ID
//	serve TAG               → serving; then for every task: run ID ATTEMPT
//
// A task with the body "hold" prints run, and then waits until its context ends: ended ID CAUSE. One with the body
// "die" prints run and dies, and ends the process.
func beChild(dsn string) (code int) {
	s, err := childScheduler(dsn)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	for commands := bufio.NewScanner(os.Stdin); commands.Scan() && err == nil; {
		err = handle(s, strings.Fields(commands.Text()))
	}
	if err = errors.Join(err, s.Stop(context.Background())); err != nil {
		fmt.Println("error", err)
		return 1
	}
	return 0
}

func childScheduler(dsn string) (*scheduler.Scheduler, error) {
	cfg := scheduler.Config{Migrate: true, TTR: time.Minute, Logger: slog.New(slog.DiscardHandler)}
	params := os.Getenv(childPool)
	if params == "" {
		return scheduler.Open(context.Background(), dsn, cfg)
	}
	dsn, _, _ = strings.Cut(dsn, "?")
	db, err := sql.Open("mysql", dsn+"?"+params)
	if err != nil {
		return nil, err
	}
	return scheduler.New(context.Background(), db, cfg)
}

func handle(s *scheduler.Scheduler, command []string) error {
	switch tag := command[1]; command[0] {
	case "save":
		ms, err := strconv.Atoi(command[2])
		if err != nil {
			return err
		}
		id, err := s.SaveDelayTask(context.Background(), tag, nil, time.Duration(ms)*time.Millisecond)
		if err == nil {
			fmt.Println("saved", id)
		}
		return err
	case "serve":
		told := make(chan struct{}) // that it serves, before all runs
		err := s.Register(tag, processor.Func(func(ctx context.Context, task *delaytask.Task) error {
			<-told
			fmt.Println("run", task.ID, task.Attempt)
			switch string(task.Body) {
			case "hold":
				<-ctx.Done()
				fmt.Println("ended", task.ID, context.Cause(ctx))
			case "die":
				fmt.Println("dies")
				os.Exit(1)
			}
			return nil
		}))
		if err = errors.Join(err, s.Start(context.Background())); err == nil {
			fmt.Println("serving")
			close(told)
		}
		return err
	default:
		return fmt.Errorf("unknown command %q", command)
	}
}

// child is another process that uses the same database.
type child struct {
	*servertest.Process
	t *testing.T
}

// spawn starts a child. It is killed when the test ends.
func spawn(t *testing.T, d dbtest.Database, env ...string) child {
	t.Helper()
	return child{servertest.Self(t, append(env, childDSN+"="+d.DSN)), t}
}

// serving spawns a child that serves the tag t.
func serving(t *testing.T, d dbtest.Database, env ...string) child {
	t.Helper()
	c := spawn(t, d, env...)
	c.told("serving", "serve", "t")
	return c
}

// told gives the child a command, and returns what follows the word of its reply.
func (c child) told(reply string, command ...any) string {
	c.t.Helper()
	_, err := fmt.Fprintln(c.In, command...)
	servertest.OK(c.t, err)
	return c.Says("^" + reply + " ?(.*)$")
}

// save has the child save a task.
func (c child) save(tag string, delay time.Duration) (id int64) {
	c.t.Helper()
	id, err := strconv.ParseInt(c.told("saved", "save", tag, delay.Milliseconds()), 10, 64)
	servertest.OK(c.t, err)
	return id
}

// stop stops the child, as a deploy would.
func (c child) stop() {
	c.t.Helper()
	servertest.OK(c.t, c.In.Close())
	c.EndsWell()
}
