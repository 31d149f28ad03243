package usage

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// CPU is what this process has used since it started, in the kernel too.
func CPU() (time.Duration, error) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, fmt.Errorf("read the CPU time: %w", err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano()), nil
}

// Stolen is how much of the CPU time of this machine its host gave to others since the machine was started, if it is a
// virtual one, and how much there was in all; in ticks, for ratios of two differences.
func Stolen() (stolen, all int64, err error) {
	stat, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, fmt.Errorf("read the CPU time of the machine: %w", err)
	}
	line, _, _ := strings.Cut(string(stat), "\n")
	fields := strings.Fields(line) // cpu user nice system idle iowait irq softirq steal, then guests (part of user)
	if len(fields) < 9 {
		return 0, 0, fmt.Errorf("/proc/stat does not tell the CPU time that was stolen: %q", line)
	}
	for _, field := range fields[1:9] {
		if stolen, err = strconv.ParseInt(field, 10, 64); err != nil {
			return 0, 0, fmt.Errorf("read the CPU time of the machine: %w", err)
		}
		all += stolen
	}
	return stolen, all, nil
}

// Memory is what this process holds now and held at most, in bytes.
func Memory() (now, peak int64, err error) {
	var total, pages int64
	statm, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(statm), &total, &pages)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the resident memory: %w", err)
	}
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, 0, fmt.Errorf("read the peak of the resident memory: %w", err)
	}
	for lines := bufio.NewScanner(bytes.NewReader(status)); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), "VmHWM:"); found {
			_, err := fmt.Sscan(value, &peak)
			return pages * int64(os.Getpagesize()), peak << 10, err
		}
	}
	return 0, 0, fmt.Errorf("/proc/self/status does not tell the peak of the resident memory")
}
