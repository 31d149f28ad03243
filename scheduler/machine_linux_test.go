package scheduler

import "testing"

// Without the machine's raw clock tasks start early while the monotonic one is slewed.
func TestAnEngineKnowsTheRawClock(t *testing.T) {
	if cfg := new(Config).engineConfig(nil); cfg.Machine.Raw == nil {
		t.Error("the engine goes by the monotonic clock alone")
	}
}
