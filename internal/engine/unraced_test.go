//go:build !race

package engine

import "testing"

// peerCounts are how many nodes divide the work in turn.
var peerCounts = []int{3, 6}

func oneProcessor(*testing.T) {}
