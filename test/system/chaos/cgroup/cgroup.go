// Package cgroup takes processor time and memory from a process that runs, by control groups of version 1. It needs
// root and Linux.
package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Group is a control group of one controller, below the former group of its member: so the limits of that group bound
// it too.
type Group struct {
	pid  string
	home string // the group that the member came from
	path string
}

// ErrNone is returned by New where groups cannot be made.
var ErrNone = errors.New("taking time and memory wants root and control groups of version 1")

// Controllers that a group can be of.
const (
	CPU    = "cpu"
	Memory = "memory"
)

// mount is where systems have the trees of groups, one for each controller.
const mount = "/sys/fs/cgroup"

// New makes a group for the process, which [Group.Enter] moves into it.
func New(controller string, pid int) (*Group, error) {
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		return nil, err // it has ended
	}
	at, found := pathOf(string(groups), controller)
	if !found {
		return nil, fmt.Errorf("%w: there is no controller %q", ErrNone, controller)
	}
	home := filepath.Join(mount, controller, at)
	g := &Group{pid: strconv.Itoa(pid), home: home, path: filepath.Join(home, fmt.Sprint("delaytask-chaos-", pid))}
	if err := os.Mkdir(g.path, 0o755); err != nil {
		return nil, errors.Join(ErrNone, err)
	}
	return g, nil
}

// pathOf finds the path of a controller in /proc/PID/cgroup, which has lines "number:controllers:path".
func pathOf(groups, controller string) (path string, found bool) {
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		for name := range strings.SplitSeq(fields[min(1, len(fields)-1)], ",") {
			if name == controller && len(fields) == 3 {
				return fields[2], true
			}
		}
	}
	return "", false
}

func (g *Group) Set(name string, value int64) error {
	return write(filepath.Join(g.path, name), strconv.FormatInt(value, 10))
}

func (g *Group) Enter() error { return write(filepath.Join(g.path, "cgroup.procs"), g.pid) }

// A process that was killed stays in its group until the kernel has removed it.
const (
	apart = 5 * time.Second
	look  = 5 * time.Millisecond
)

// Close moves the process back, if it lives, and removes the group.
func (g *Group) Close() error {
	_ = write(filepath.Join(g.home, "cgroup.procs"), g.pid) // it may have ended
	overdue := time.After(apart)
	for {
		err := os.Remove(g.path)
		if !errors.Is(err, syscall.EBUSY) {
			return err
		}
		select {
		case <-overdue:
			return err
		case <-time.After(look):
		}
	}
}

// Count reads a named number from a file of the group, which has one a line. It returns 0 when the file has no such
// number.
func (g *Group) Count(file, name string) (int64, error) {
	text, err := os.ReadFile(filepath.Join(g.path, file))
	if err != nil {
		return 0, err
	}
	return numberOf(string(text), name), nil
}

func numberOf(text, name string) int64 {
	for line := range strings.Lines(text) {
		if fields := strings.Fields(line); len(fields) == 2 && fields[0] == name {
			n, _ := strconv.ParseInt(fields[1], 10, 64)
			return n
		}
	}
	return 0
}

func write(path, value string) error { return os.WriteFile(path, []byte(value), 0) }
