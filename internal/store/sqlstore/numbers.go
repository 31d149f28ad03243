package sqlstore

import (
	"slices"

	"github.com/delaytask/delaytask"
)

// numbers has the values of a column at the numbers that stand for them in the table. "" counts as the first.
type numbers[E ~string] []E

// A number never changes its meaning: other versions read and write the same tables.
var (
	lateReasons = append(numbers[delaytask.LateReason]{""}, delaytask.LateReasons()...)
	overlaps    = numbers[delaytask.Overlap]{
		delaytask.OverlapSkip, delaytask.OverlapQueueOne, delaytask.OverlapReplace, delaytask.OverlapAllow,
	}
	missed = numbers[delaytask.Missed]{delaytask.MissedOnce, delaytask.MissedSkip, delaytask.MissedAll}
)

func (n numbers[E]) of(value E) int64 { return int64(max(0, slices.Index(n, value))) }

// at returns "" for a number of a later version.
func (n numbers[E]) at(number int64) (value E) {
	if number < int64(len(n)) {
		value = n[number]
	}
	return value
}
