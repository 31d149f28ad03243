// Package examples runs every program in the folder examples against a real server.
package examples

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/client"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

func TestInProcess(t *testing.T) {
	t.Parallel()
	p := run(t, []string{"DELAYTASK_DSN=sqlite:" + filepath.Join(t.TempDir(), "tasks.db")},
		servertest.Build(t, "./examples/inprocess"))
	p.Says("^hello Go$")
	p.Stops()
}

func TestInProcessWithoutSettings(t *testing.T) {
	program := servertest.Build(t, "./examples/inprocess")
	t.Chdir(t.TempDir())
	run(t, []string{"DELAYTASK_DSN="}, program).Says("^hello Go$")
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	env := []string{"DELAYTASK_DSN=sqlite:" + filepath.Join(t.TempDir(), "tasks.db")}
	program := servertest.Build(t, "./examples/schedule")
	p := run(t, env, program)
	p.Says(`^report of shop north at \d\d:\d\d:\d[02468]$`)
	p.Says(`^report of shop south at`)
	p.Kill()
	p = run(t, env, program) // goes on by the table
	p.Says(`^report of shop north at \d\d:\d\d:\d[02468]$`)
	p.Stops()
}

func TestOverHTTP(t *testing.T) {
	t.Parallel()
	env, c := service(t)
	p := run(t, env, servertest.Build(t, "./examples/overhttp"))
	p.Says("^hello Go$")
	id := save(t, c, `{"name":"you"}`)
	p.Says("^hello you$")
	completed(t, c, id)
	p.Stops()
}

func TestReceiver(t *testing.T) {
	t.Parallel()
	env, c := service(t)
	program := servertest.Build(t, "./examples/receiver")
	first, second := run(t, env, program), run(t, env, program)
	for n := range 10 { // every one is called
		name := fmt.Sprint("you", n)
		id := save(t, c, `{"name":"`+name+`"}`)
		completed(t, c, id)
	}
	first.Says("^hello you")
	second.Says("^hello you")
	first.Kill()
	for range 5 {
		completed(t, c, save(t, c, `{"name":"left"}`))
		second.Says("^hello left$")
	}
	second.Stops()
	late := save(t, c, `{"name":"late"}`)
	third := run(t, env, program)
	third.Says("^hello late$")
	// Perhaps after a call of the one that was killed.
	if task := settled(t, c, late); task.Status != delaytask.Completed {
		t.Errorf("got %+v", task)
	}
	third.Stops()
}

func TestCurlWalkthrough(t *testing.T) {
	t.Parallel()
	need(t, "curl")
	env, _ := service(t)
	p := run(t, env, "sh", "../../examples/curl/walkthrough.sh")
	p.Says(`"status":"pending"`)
	p.Says(`"reason":"not_due"`)
	p.Says(`"token":"\d+\.\d+"`)
	p.Says(`"status":"completed"`)
	p.EndsWell()
}

func TestPythonWorker(t *testing.T) {
	t.Parallel()
	worker(t, "python3", "../../examples/python/worker.py")
}

func TestNodeWorker(t *testing.T) {
	t.Parallel()
	worker(t, "node", "../../examples/node/worker.mjs")
}

// worker runs a worker in another language: it finishes, fails, renews its lease, and stops in order.
func worker(t *testing.T, interpreter, file string) {
	need(t, interpreter)
	env, c := service(t)
	p := run(t, append(env, "TTR=3"), interpreter, file)

	id := save(t, c, `{"name":"you"}`)
	p.Says("^hello you$")
	completed(t, c, id)

	id = save(t, c, `{"fail":"no such user"}`, delaytask.WithMaxAttempts(1))
	if task := settled(t, c, id); task.Status != delaytask.Failed ||
		!strings.Contains(task.LastError(), "no such user") {
		t.Errorf("got %+v", task)
	}

	// Longer than its lease, and stopped while it runs.
	id = save(t, c, `{"name":"long","seconds":4}`)
	var lease time.Time
	until(t, c, id, func(task *delaytask.TaskRow) bool {
		if task.Status != delaytask.Executing {
			return false
		}
		if lease.IsZero() || task.Due.Before(lease) { // the pop's lease is shorter than the task's own
			lease = task.Due
		}
		return task.Due.After(lease) // renewed: so it has arrived at the worker
	})
	p.Stops()
	completed(t, c, id)

	// A worker that waits in a poll ends at once.
	p = run(t, env, interpreter, file)
	id = save(t, c, `{"name":"again"}`)
	p.Says("^hello again$")
	completed(t, c, id)
	p.Signal(os.Interrupt) // Ctrl-C
	p.EndsWell()
}

// need skips the test where a program is missing that delaytask itself does not need.
func need(t *testing.T, program string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is not on this machine: %v", program, err)
	}
}

func save(t *testing.T, c *client.Client, body string, opts ...delaytask.Option) int64 {
	t.Helper()
	id, err := c.SaveDelayTask(t.Context(), "greet", body, 10*time.Millisecond, opts...)
	servertest.OK(t, err)
	return id
}

// completed waits until the task is completed, after one run.
func completed(t *testing.T, c *client.Client, id int64) {
	t.Helper()
	if task := settled(t, c, id); task.Status != delaytask.Completed || task.Attempt != 1 || task.CrashCount != 0 {
		t.Errorf("got %+v", task)
	}
}

func settled(t *testing.T, c *client.Client, id int64) delaytask.TaskRow {
	t.Helper()
	return until(t, c, id, func(task *delaytask.TaskRow) bool { return task.Status.Final() })
}

func until(t *testing.T, c *client.Client, id int64, met func(*delaytask.TaskRow) bool) delaytask.TaskRow {
	t.Helper()
	late := time.After(time.Minute)
	for tick := time.Tick(10 * time.Millisecond); ; {
		task, err := c.Get(t.Context(), delaytask.ID(id))
		servertest.OK(t, err)
		if met(&task) {
			return task
		}
		select {
		case <-tick:
		case <-late:
			why, err := c.Explain(t.Context(), delaytask.ID(id))
			t.Fatalf("task %d is %s in attempt %d: %s (%v)", id, task.Status, task.Attempt, why.Text, err)
		}
	}
}

func TestExamplesAreShort(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../examples/*/*")
	if err != nil || len(files) < 5 {
		t.Fatalf("found %v, %v", files, err)
	}
	sources := []string{".go", ".mjs", ".py", ".sh"}
	for _, file := range files {
		if !slices.Contains(sources, filepath.Ext(file)) || strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(file)
		servertest.OK(t, err)
		lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		if len(lines) > 64 {
			t.Errorf("%s has %d lines, want at most 64", file, len(lines))
		}
		for _, line := range lines {
			if n := len([]rune(line)); n > 128 {
				t.Errorf("%s has a line of %d characters", file, n)
			}
		}
	}
}
