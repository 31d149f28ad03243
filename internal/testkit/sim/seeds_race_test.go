//go:build race

package sim

import "testing"

// The race detector makes a seed ten times as slow.
func TestSeeds(t *testing.T) { playSeeds(t, 20) }
