package cluster

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"github.com/delaytask/delaytask/internal/row"
)

func asNode(p Process) row.Node {
	return row.Node{Token: p.Token, Host: p.Host, PID: p.PID, StartedAt: p.StartedAt}
}

func TestProcessKnowsWhichProcessesAreGone(t *testing.T) {
	t.Parallel()
	self, other := NewProcess(), NewProcess()
	if self.Token == other.Token || len(self.Token) != 16 {
		t.Errorf("tokens %q and %q, want two different ones of 16 digits", self.Token, other.Token)
	}
	if self.Gone(asNode(self)) {
		t.Error("the running process is gone")
	}
	if self.Host == "" {
		t.Skip("this system does not tell which processes live")
	}
	// A child that waits for its standard input to end.
	child := exec.Command(os.Args[0], "-test.run=^TestChildWaitsForTheEndOfItsInput$")
	child.Env = append(os.Environ(), "CLUSTER_HELPER=1")
	stdin, err := child.StdinPipe()
	mustOK(t, err)
	mustOK(t, child.Start())
	started, err := startTime(child.Process.Pid)
	mustOK(t, err)
	node := row.Node{Host: self.Host, PID: child.Process.Pid, StartedAt: started}
	if self.Gone(node) {
		t.Error("a living process is gone")
	}
	reused := node
	reused.StartedAt--
	if !self.Gone(reused) {
		t.Error("a process whose pid was reused lives")
	}

	mustOK(t, errors.Join(stdin.Close(), child.Wait()))
	if !self.Gone(node) {
		t.Error("a process that ended lives")
	}
	elsewhere := node
	elsewhere.Host = "another/host"
	if self.Gone(elsewhere) {
		t.Error("a process of another host is gone")
	}
	unknown := node
	unknown.StartedAt = 0
	if self.Gone(unknown) {
		t.Error("a process of unknown start time is gone")
	}
}

func TestChildWaitsForTheEndOfItsInput(t *testing.T) {
	if os.Getenv("CLUSTER_HELPER") == "" {
		t.Skip("runs as a child process only")
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
}
