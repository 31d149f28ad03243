package usage

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
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
