//go:build race

package engine

import (
	"runtime"
	"testing"
)

// The race detector makes a node's minute ten times as long, and sees no more with twice as many of them.
var peerCounts = []int{3}

// oneProcessor is for a bubble in which many timers are due at one moment. Several processors may run them with one
// context of the race detector, which then ends the program (https://github.com/golang/go/issues/78156).
func oneProcessor(t *testing.T) {
	before := runtime.GOMAXPROCS(1)
	t.Cleanup(func() { runtime.GOMAXPROCS(before) })
}
