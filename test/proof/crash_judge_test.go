package main

import "testing"

func TestWithinWantsAllAndAtLeastOne(t *testing.T) {
	for _, tt := range []struct {
		l    late
		n    int
		want bool
	}{
		{late{1, 2}, 2, true},
		{late{1, 3}, 2, false}, // one is late
		{late{1}, 2, false},    // one is missing
		{nil, 0, false},        // the proof met no such case
	} {
		if got := within(tt.l, tt.n, 2); got != tt.want {
			t.Errorf("%v of %d within 2: %v, want %v", tt.l, tt.n, got, tt.want)
		}
	}
}
