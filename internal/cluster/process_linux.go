package cluster

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// hostIdentity names the pid namespace of this boot of this machine: a pid means the same to two processes if and only
// if they share it. Containers on one machine have namespaces of their own. A reboot resets the pids.
func hostIdentity(name string) string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	pids, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	sum := sha256.Sum256([]byte(string(bytes.TrimSpace(boot)) + pids))
	return name + "/" + hex.EncodeToString(sum[:8])
}

// startTime returns the clock tick since boot at which a process started, or fs.ErrNotExist when there is no such
// process. Processes of other users may be hidden (proc's option hidepid, systemd's ProtectProc) and look as if they
// were not there; signals know better.
func startTime(pid int) (int64, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, fs.ErrNotExist) && exists(pid) {
		return 0, fmt.Errorf("process %d is hidden: %w", pid, fs.ErrPermission)
	}
	if err != nil {
		return 0, err
	}
	return parseStartTime(stat)
}

// exists reports whether a process has the id.
func exists(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// parseStartTime reads field 22 of a stat file. The second field is the program's name in parentheses and may itself
// hold spaces and parentheses, so counting begins behind the last one.
func parseStartTime(stat []byte) (int64, error) {
	const afterName = 22 - 3
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) <= afterName {
		return 0, fmt.Errorf("process status has %d fields after the name, want more than %d", len(fields), afterName)
	}
	started, err := strconv.ParseInt(string(fields[afterName]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the start time of a process: %w", err)
	}
	return started, nil
}
