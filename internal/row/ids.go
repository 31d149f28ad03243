package row

import (
	"cmp"
	"slices"
)

// IDsOf returns the ids of all, in their order.
func IDsOf[T any](all []T, id func(T) int64) []int64 {
	ids := make([]int64, len(all))
	for i, v := range all {
		ids[i] = id(v)
	}
	return ids
}

// Distinct returns the values in ascending order, each once.
func Distinct[T cmp.Ordered](all []T) []T { return slices.Compact(slices.Sorted(slices.Values(all))) }

// StatesByID orders what a store says of rows by their ids.
func StatesByID(states []State) map[int64]State {
	byID := make(map[int64]State, len(states))
	for _, s := range states {
		byID[s.ID] = s
	}
	return byID
}
