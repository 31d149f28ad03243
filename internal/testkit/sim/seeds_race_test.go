//go:build race

package sim

const defaultSeeds = 20 // the race detector makes everything ten times as slow
