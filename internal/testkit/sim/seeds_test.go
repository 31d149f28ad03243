//go:build !race

package sim

import "testing"

func TestSeeds(t *testing.T) { playSeeds(t, 200) }
