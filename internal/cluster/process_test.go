package cluster

import (
	"errors"
	"maps"
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
	node, end := startChild(t, self)
	if self.Gone(node) {
		t.Error("a living process is gone")
	}
	reused := node
	reused.StartedAt--
	if !self.Gone(reused) {
		t.Error("a process whose pid was reused lives")
	}

	end()
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

func TestNeighboursThatHaveEndedAreSeen(t *testing.T) {
	t.Parallel()
	self := NewProcess()
	if self.Host == "" {
		t.Skip("this system does not tell which processes live")
	}
	child, end := startChild(t, self)
	reused := child
	reused.Token, reused.StartedAt = "reused", child.StartedAt-1
	nodes := []row.Node{asNode(self), child, reused, {Token: "elsewhere", Host: "another/host", PID: 1, StartedAt: 1}}
	neighbours := NewNeighbours(self)
	look := func(want map[string]bool) {
		t.Helper()
		if got := neighbours.Ended(nodes); !maps.Equal(got, want) {
			t.Errorf("ended: %v, want %v", got, want)
		}
	}
	look(map[string]bool{self.Token: false, "child": false, "reused": true})
	end()
	look(map[string]bool{self.Token: false, "child": true, "reused": true})
	look(map[string]bool{self.Token: false, "child": true, "reused": true})
	nodes = nodes[:1]
	look(map[string]bool{self.Token: false})
}

// startChild starts a process that waits for its standard input to end, which end does.
func startChild(t *testing.T, self Process) (node row.Node, end func()) {
	t.Helper()
	child := exec.Command(os.Args[0], "-test.run=^TestChildWaitsForTheEndOfItsInput$")
	child.Env = append(os.Environ(), "CLUSTER_HELPER=1")
	stdin, err := child.StdinPipe()
	mustOK(t, err)
	mustOK(t, child.Start())
	started, err := startTime(child.Process.Pid)
	mustOK(t, err)
	node = row.Node{Token: "child", Host: self.Host, PID: child.Process.Pid, StartedAt: started}
	return node, func() {
		t.Helper()
		mustOK(t, errors.Join(stdin.Close(), child.Wait()))
	}
}

func TestChildWaitsForTheEndOfItsInput(t *testing.T) {
	if os.Getenv("CLUSTER_HELPER") == "" {
		t.Skip("runs as a child process only")
	}
	_, _ = os.Stdin.Read(make([]byte, 1))
}
