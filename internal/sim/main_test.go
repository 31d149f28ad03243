package sim

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets garbage pile up: a seed makes much and keeps little, and collecting it all the time takes long. The journals
// of a run are some megabytes, so the limit is met only by what is wrong.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(800)
		debug.SetMemoryLimit(2 << 30)
	}
	os.Exit(m.Run())
}
