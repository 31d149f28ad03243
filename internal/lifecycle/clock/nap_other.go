//go:build !linux

package clock

import "time"

// Nap blocks for d, as exactly as a timer can.
func Nap(d time.Duration) { time.Sleep(d) }
