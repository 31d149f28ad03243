package main

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/lateness"
)

// late is how late tasks started.
type late []time.Duration

func (l late) percentile(p float64) time.Duration { return lateness.Percentile(l, p) }

func (l late) String() string {
	if len(l) == 0 {
		return "nothing started"
	}
	p50, p99, most := l.percentile(50), l.percentile(99), l.percentile(100)
	return fmt.Sprintf("%s / %s / %s", milliseconds(p50), milliseconds(p99), milliseconds(most))
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// of is "n of m".
func of(n, m int) string { return fmt.Sprintf("%d of %d", n, m) }
