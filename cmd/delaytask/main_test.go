package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

// TestMain is also the program itself: the demo and the benchmark start their own executable in other roles.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && (os.Args[1] == "demo" || os.Args[1] == "bench") {
		main()
	}
	goleak.VerifyTestMain(m)
}

// shell runs the program on an embedded database of its own.
type shell struct {
	t           *testing.T
	dsn         string
	stdin       string
	environ     []string // besides the DSN
	watched     bool
	interactive bool
}

func newShell(t *testing.T) *shell {
	return &shell{t: t, dsn: "sqlite:" + filepath.Join(t.TempDir(), "tasks.db")}
}

type result struct {
	code     int
	stdout   string
	stderr   string // without the line about the database
	database string
}

func (s *shell) run(args ...string) result {
	s.t.Helper()
	var stdout, stderr bytes.Buffer
	a := &app{
		stdin: strings.NewReader(s.stdin), stdout: &stdout, stderr: &stderr,
		environ: append([]string{"DELAYTASK_DSN=" + s.dsn}, s.environ...),
		watched: s.watched, interactive: s.interactive,
	}
	r := result{code: a.run(s.t.Context(), args), stdout: stdout.String(), stderr: stderr.String()}
	if line, rest, _ := strings.Cut(r.stderr, "\n"); strings.HasPrefix(line, "Database: ") {
		r.database, r.stderr = line, rest
	}
	return r
}

// ok runs a command that must succeed and returns what it printed.
func (s *shell) ok(args ...string) string {
	s.t.Helper()
	r := s.run(args...)
	if r.code != exitDone {
		s.t.Fatalf("delaytask %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r.stdout
}

// decode runs a command with --json and decodes what it printed.
func (s *shell) decode(into any, args ...string) {
	s.t.Helper()
	out := s.ok(append(args, "--json")...)
	decoder := json.NewDecoder(strings.NewReader(out))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		s.t.Fatalf("delaytask %s: %v in\n%s", strings.Join(args, " "), err, out)
	}
}

// items runs a command that prints a list, and decodes it. It returns where the next page begins.
func (s *shell) items(into any, args ...string) (next string) {
	s.t.Helper()
	list := struct {
		Items any    `json:"items"`
		Next  string `json:"next"`
	}{Items: into}
	s.decode(&list, args...)
	return list.Next
}

// save saves a task and returns its id.
func (s *shell) save(args ...string) string {
	s.t.Helper()
	return strings.TrimSpace(s.ok(append([]string{"save"}, args...)...))
}

// exec changes the database by plain SQL.
func (s *shell) exec(statement string, args ...any) {
	s.t.Helper()
	db, err := sql.Open("sqlite", strings.TrimPrefix(s.dsn, "sqlite:")+"?_pragma=busy_timeout(10000)")
	servertest.OK(s.t, err)
	defer db.Close()
	if _, err := db.ExecContext(s.t.Context(), statement, args...); err != nil {
		s.t.Fatal(err)
	}
}

// serve saves n tasks of the tag and runs each once. It returns their ids.
func (s *shell) serve(tag string, n int, result error) (ids []string) {
	s.t.Helper()
	for range n {
		ids = append(ids, s.save(tag, `{"n":1}`))
	}
	started := make(chan struct{}, n)
	node := s.node(scheduler.Config{}, tag, func(context.Context, *delaytask.Task) error {
		started <- struct{}{}
		return result
	})
	for range n {
		<-started
	}
	if err := node.Stop(context.WithoutCancel(s.t.Context())); err != nil { // writes the results
		s.t.Fatal(err)
	}
	return ids
}

// node starts a process that serves the tag.
func (s *shell) node(c scheduler.Config, tag string, process processor.Func) *scheduler.Scheduler {
	s.t.Helper()
	c.Logger = slog.New(slog.DiscardHandler)
	node, err := scheduler.Open(s.t.Context(), s.dsn, c)
	servertest.OK(s.t, err)
	servertest.OK(s.t, errors.Join(node.Register(tag, process), node.Start(s.t.Context())))
	return node
}

var errOnFire = processor.Permanent(errors.New("the printer is on fire"))

func contains(t *testing.T, text string, wanted ...string) {
	t.Helper()
	for _, w := range wanted {
		if !strings.Contains(text, w) {
			t.Errorf("no %q in\n%s", w, text)
		}
	}
}
