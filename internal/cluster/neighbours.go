package cluster

import (
	"errors"
	"os"
	"sync"
	"syscall"

	"github.com/delaytask/delaytask/internal/row"
)

// Neighbours are the processes of this host among the nodes. Each is looked up once, by its id and its start. From then
// on the kernel's handle of the process tells of its end, for a system call. To read /proc again and again costs far
// more, and while processes end, readers make each other wait in the kernel.
type Neighbours struct {
	self Process

	mu    sync.Mutex
	known map[string]*os.Process // by token; nil for those that have ended
}

// NewNeighbours returns the neighbours of a process, of which none is known yet.
func NewNeighbours(self Process) *Neighbours {
	return &Neighbours{self: self, known: map[string]*os.Process{}}
}

// Ended returns which of the nodes ran on this host and have ended, by token.
func (n *Neighbours) Ended(nodes []row.Node) map[string]bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	ended, known := map[string]bool{}, make(map[string]*os.Process, len(nodes))
	for _, node := range nodes {
		if !n.self.knows(node) {
			continue
		}
		process, met := n.known[node.Token]
		if !met {
			process = n.self.find(node)
		}
		if process != nil && errors.Is(process.Signal(syscall.Signal(0)), os.ErrProcessDone) {
			process = nil
		}
		known[node.Token], ended[node.Token] = process, process == nil
	}
	for token, process := range n.known {
		if process != nil && known[token] == nil {
			_ = process.Release()
		}
	}
	n.known = known
	return ended
}

// find returns the node's process, and nil if it has ended.
func (p Process) find(n row.Node) *os.Process {
	process, err := os.FindProcess(n.PID) // before the look at its start: the id may be another one's at any moment
	if err != nil {
		return nil
	}
	if p.Gone(n) {
		_ = process.Release()
		return nil
	}
	return process
}
