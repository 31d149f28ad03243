//go:build !race

package engine

// peerCounts are how many nodes divide the work in turn.
var peerCounts = []int{3, 6}
