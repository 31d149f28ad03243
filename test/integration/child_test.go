//go:build unix

package integration

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
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
	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		reply, err := handle(s, strings.Fields(commands.Text()))
		if err != nil {
			fmt.Println("error", err)
			return 1
		}
		fmt.Println(reply)
	}
	if err := s.Stop(context.Background()); err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("stopped")
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

func handle(s *scheduler.Scheduler, command []string) (reply string, err error) {
	switch tag := command[1]; command[0] {
	case "save":
		ms, err := strconv.Atoi(command[2])
		if err != nil {
			return "", err
		}
		id, err := s.SaveDelayTask(context.Background(), tag, nil, time.Duration(ms)*time.Millisecond)
		return fmt.Sprint("saved ", id), err
	case "serve":
		err := s.Register(tag, processor.Func(func(ctx context.Context, task *delaytask.Task) error {
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
		if err != nil {
			return "", err
		}
		return "serving", s.Start(context.Background())
	default:
		return "", fmt.Errorf("unknown command %q", command)
	}
}

// child is another process that uses the same database.
type child struct {
	t      *testing.T
	cmd    *exec.Cmd
	in     io.WriteCloser
	lines  chan string
	unread [][]string
	ended  chan struct{} // closed when all that it said is in lines
}

// spawn starts a child. It is killed when the test ends.
func spawn(t *testing.T, d dbtest.Database, env ...string) *child {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childDSN+"="+d.DSN), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	servertest.OK(t, err)
	out, err := cmd.StdoutPipe()
	servertest.OK(t, err)
	servertest.OK(t, cmd.Start())
	c := &child{t: t, cmd: cmd, in: in, lines: make(chan string, 10_000), ended: make(chan struct{})}
	go func() {
		defer close(c.ended)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			c.lines <- scan.Text()
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended already
		<-c.ended
		_ = cmd.Wait()
	})
	return c
}

func (c *child) say(command ...any) {
	c.t.Helper()
	if _, err := fmt.Fprintln(c.in, command...); err != nil {
		c.t.Fatal(err)
	}
}

// hear waits for the next line that begins with the word, and returns the rest of it. Other lines stay for later calls.
func (c *child) hear(word string) []string {
	c.t.Helper()
	for i, said := range c.unread {
		if said[0] == word {
			c.unread = slices.Delete(c.unread, i, i+1)
			return said[1:]
		}
	}
	for {
		said := strings.Fields(servertest.Receive(c.t, c.lines, "child says "+word))
		switch said[0] {
		case word:
			return said[1:]
		case "error":
			c.t.Fatalf("child: %s", said)
		}
		c.unread = append(c.unread, said)
	}
}

// died reports whether the child has run a task that ends its process. It waits for nothing.
func (c *child) died() bool {
	c.read()
	return slices.ContainsFunc(c.unread, func(said []string) bool { return said[0] == "dies" })
}

func (c *child) read() {
	for {
		select {
		case line := <-c.lines:
			c.unread = append(c.unread, strings.Fields(line))
		default:
			return
		}
	}
}

// rest waits for the end of the child, and returns what follows the word in the lines that are left.
func (c *child) rest(word string) (said [][]string) {
	<-c.ended
	c.read()
	for _, line := range c.unread {
		if line[0] == word {
			said = append(said, line[1:])
		}
	}
	return said
}

// save has the child save a task.
func (c *child) save(tag string, delay time.Duration) (id int64) {
	c.t.Helper()
	c.say("save", tag, delay.Milliseconds())
	id, err := strconv.ParseInt(c.hear("saved")[0], 10, 64)
	servertest.OK(c.t, err)
	return id
}

// stop stops the child, as a deploy would.
func (c *child) stop() {
	c.t.Helper()
	servertest.OK(c.t, c.in.Close())
	c.hear("stopped")
}

func (c *child) signal(s os.Signal) {
	c.t.Helper()
	servertest.OK(c.t, c.cmd.Process.Signal(s))
}
