package nodebench

import "testing"

func TestSpreadIsTheWorstOfTheShares(t *testing.T) {
	for _, tt := range []struct {
		ran  []int
		want float64
	}{
		{[]int{100, 100, 100}, 0},
		{[]int{90, 100, 110}, 10},
		{[]int{120, 120, 60}, 40},
		{[]int{0, 0, 300}, 200},
		{[]int{300}, 0},
		{[]int{0, 0}, 0},
		{nil, 0},
	} {
		if got := Spread(tt.ran); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.ran, got, tt.want)
		}
	}
}

func TestWastedIsTriedAndNotWonByAll(t *testing.T) {
	for _, tt := range []struct {
		claims []Claims
		want   float64
	}{
		{[]Claims{{Tried: 100, Won: 100}, {Tried: 100, Won: 90}}, 5},
		{[]Claims{{}, {Tried: 4, Won: 0}}, 100},
		{nil, 0},
	} {
		if got := Wasted(tt.claims); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.claims, got, tt.want)
		}
	}
}
