//go:build race

package engine

// The race detector makes a node's minute ten times as long, and sees no more with twice as many of them.
var peerCounts = []int{3}
