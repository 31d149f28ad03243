package run

import (
	"testing"
	"time"
)

func TestBatchSizeFollowsHowLongClaimsTake(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second
	var s batchSize
	for _, step := range []struct {
		rows int
		took time.Duration
		want int
	}{
		{500, 2 * time.Second, 500},
		{500, 2001 * time.Millisecond, 250},
		{100, 3 * time.Second, 50},
		{1, time.Minute, 1},
		{500, time.Minute, 1}, // it was sent before
		{1, 1500 * time.Millisecond, 1},
		{1, 999 * time.Millisecond, 2},
		{1, time.Millisecond, 2}, // it was no full one
		{2, time.Millisecond, 4},
		{400, time.Millisecond, 500},
	} {
		s.took(step.rows, step.took, lease)
		if got := s.rows(); got != step.want {
			t.Errorf("after %d rows in %v: %d, want %d", step.rows, step.took, got, step.want)
		}
	}
}
