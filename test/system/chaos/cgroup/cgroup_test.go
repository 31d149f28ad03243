package cgroup

import (
	"errors"
	"os"
	"os/exec"
	"testing"
)

func TestProcFilesAreRead(t *testing.T) {
	t.Parallel()
	const told = "4:memory:/a:b/c\n2:cpu,cpuacct:/\n1:name=systemd:/x\n0::/\n"
	for controller, want := range map[string]string{"memory": "/a:b/c", "cpu": "/", "cpuacct": "/", "pids": ""} {
		if got, found := pathOf(told, controller); got != want || found != (want != "") {
			t.Errorf("%s: %q, %v; want %q", controller, got, found, want)
		}
	}
	const stat = "nr_periods 23\nnr_throttled 21\nodd\n"
	for name, want := range map[string]int64{"nr_throttled": 21, "nr_periods": 23, "odd": 0, "oom_kill": 0} {
		if got := numberOf(stat, name); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

func TestProcessWithoutMemoryIsKilled(t *testing.T) {
	const script = `read -r _; x=$(head -c 30000000 /dev/zero | tr '\0' x); echo "$x"`
	hungry := exec.CommandContext(t.Context(), "sh", "-c", script)
	goOn, err := hungry.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := hungry.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hungry.Process.Kill() }() // where it was not killed before
	g, err := New(Memory, hungry.Process.Pid)
	if errors.Is(err, ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Set("memory.limit_in_bytes", 10_000_000), g.Enter(), goOn.Close()); err != nil {
		t.Fatal(errors.Join(err, g.Close()))
	}
	if hungry.Wait() == nil {
		t.Error("it got its memory")
	}
	if n, err := g.Count("memory.oom_control", "oom_kill"); err != nil || n == 0 {
		t.Errorf("%d kills, %v", n, err)
	}
	if err := g.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(g.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the group is there: %v", err)
	}
}

func TestProcessThatLivesGoesBackWhereItWas(t *testing.T) {
	idle := exec.CommandContext(t.Context(), "cat")
	end, err := idle.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := idle.Start(); err != nil {
		t.Fatal(err)
	}
	g, err := New(CPU, idle.Process.Pid)
	if errors.Is(err, ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(g.Set("cpu.cfs_quota_us", 5000), g.Enter(), g.Close()); err != nil {
		t.Error(err)
	}
	if err := errors.Join(end.Close(), idle.Wait()); err != nil {
		t.Error(err)
	}
}
