//go:build !race

package engine

// companies are how many nodes divide the work in turn.
var companies = []int{3, 6}
