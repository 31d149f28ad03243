package main

import (
	"slices"
	"testing"
)

func TestTheLargestCircleIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		arrows map[string][]string
		want   []string
	}{
		{map[string][]string{"a": {"b"}, "b": {"c"}}, nil},
		{map[string][]string{"a": {"b"}, "b": {"a", "c"}, "c": {"d"}, "d": {"e"}, "e": {"c"}}, []string{"c", "d", "e"}},
		{map[string][]string{"a": {"a"}}, []string{"a"}},
	} {
		if got := largestCircle(c.arrows); !slices.Equal(got, c.want) {
			t.Errorf("%v: got %v, want %v", c.arrows, got, c.want)
		}
	}
}
