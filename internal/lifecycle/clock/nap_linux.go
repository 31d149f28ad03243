package clock

import (
	"errors"
	"syscall"
	"time"
)

// Nap blocks for d as exactly as the machine can. A timer of the Go runtime fires up to a millisecond late, because the
// runtime waits for it in whole milliseconds. The system's sleep is late by a twentieth of that. It occupies a thread
// and cannot be interrupted.
func Nap(d time.Duration) {
	for left := syscall.NsecToTimespec(int64(d)); ; {
		if err := syscall.Nanosleep(&left, &left); !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}
