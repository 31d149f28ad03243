package cluster

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"net"
	"os"

	"github.com/delaytask/delaytask/internal/row"
)

// maxName leaves room in the executor's column for what follows the name.
const maxName = 128

// Process tells this process from every other one, on this host and elsewhere.
type Process struct {
	Token     string // 16 hexadecimal digits, drawn when the process starts
	Name      string // the host's name, or "localhost"
	Host      string // which machine and pid namespace PID belongs to; "" where that cannot be known
	PID       int
	StartedAt int64  // when the process started, as the kernel counts it; 0 where that cannot be known
	IP        uint32 // an IPv4 address of the host, 0 when it has none but the loopback's
}

// NewProcess reads the identity of the running process and draws a token.
func NewProcess() Process {
	name, err := os.Hostname()
	if err != nil || name == "" {
		name = "localhost"
	}
	name = row.Clip(name, maxName)
	pid := os.Getpid()
	started, _ := startTime(pid)
	return Process{
		Token:     newToken(),
		Name:      name,
		Host:      hostIdentity(name),
		PID:       pid,
		StartedAt: started,
		IP:        hostIP(),
	}
}

// Gone reports whether a node ran on this very host and its process has ended. False means alive or not known.
func (p Process) Gone(n row.Node) bool {
	if !p.knows(n) {
		return false
	}
	started, err := startTime(n.PID)
	if err != nil {
		return os.IsNotExist(err)
	}
	return started != n.StartedAt
}

// knows reports whether the node's process id means the same here.
func (p Process) knows(n row.Node) bool {
	return p.Host != "" && p.Host == n.Host && n.PID > 0 && n.StartedAt != 0
}

func newToken() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// hostIP picks the first IPv4 address that other machines could know. It helps an operator to find the machine. Nothing
// depends on it.
func hostIP() uint32 {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return 0
	}
	for _, addr := range addrs {
		if ipNet, ok := addr.(*net.IPNet); ok && ipNet.IP.IsGlobalUnicast() {
			if ip4 := ipNet.IP.To4(); ip4 != nil {
				return binary.BigEndian.Uint32(ip4)
			}
		}
	}
	return 0
}
