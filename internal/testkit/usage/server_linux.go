package usage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// tick is what /proc counts CPU time in.
const tick = time.Second / 100

// CPUOf is what a process has used since it started, in the kernel too.
func CPUOf(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	// Its name, in brackets, may have spaces.
	return ticks(strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])), 11, 12)
}

// Idle is for how long the cores of this machine had nothing to do since it was started, all cores together.
func Idle() (time.Duration, error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read the idle time of the machine: %w", err)
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	return ticks(strings.Fields(line), 4, 5) // idle, and idle while a disk works
}

// ticks adds up two of the fields.
func ticks(fields []string, a, b int) (time.Duration, error) {
	if len(fields) <= b {
		return 0, fmt.Errorf("the system tells no times: %q", fields)
	}
	one, err := strconv.ParseInt(fields[a], 10, 64)
	other, also := strconv.ParseInt(fields[b], 10, 64)
	return time.Duration(one+other) * tick, errors.Join(err, also)
}

// ServerPID finds the server of MySQL or MariaDB on this machine that has written its pid to the file, as it sees both:
// it may run in a folder or a container of its own.
func ServerPID(file string) (int, error) {
	names, err := filepath.Glob("/proc/[0-9]*/comm")
	if err != nil {
		return 0, err
	}
	var found []int
	for _, name := range names {
		folder := filepath.Dir(name)
		comm, _ := os.ReadFile(name) // the process may have ended
		if !slices.Contains([]string{"mysqld", "mariadbd"}, strings.TrimSpace(string(comm))) {
			continue
		}
		told, _ := os.ReadFile(filepath.Join(folder, "root", file))
		status, _ := os.ReadFile(filepath.Join(folder, "status"))
		_, pids, _ := strings.Cut(string(status), "\nNSpid:")
		pids, _, _ = strings.Cut(pids, "\n") // outside and inside of containers
		if seen := strings.Fields(pids); len(seen) > 0 && seen[len(seen)-1] == strings.TrimSpace(string(told)) {
			pid, _ := strconv.Atoi(filepath.Base(folder)) // as the pattern says
			found = append(found, pid)
		}
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("%d processes here can be seen to be the server with the pid file %s", len(found), file)
	}
	return found[0], nil
}
