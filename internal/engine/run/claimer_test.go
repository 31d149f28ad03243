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

// A slow commit is no reason for smaller claims: they would take as long, and there would be more of them.
func TestBatchSizeLeavesOutWhatEveryClaimTakes(t *testing.T) {
	t.Parallel()
	var s batchSize
	for i := range 20 {
		s.took(20, time.Duration(i)*200*time.Millisecond, time.Minute)
	}
	s.took(11, 4500*time.Millisecond, 8*time.Second)
	if got := s.rows(); got != 500 {
		t.Errorf("after 11 rows in 4.5 s, as all before: %d rows, want 500", got)
	}
}
