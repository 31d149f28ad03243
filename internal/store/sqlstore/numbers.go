package sqlstore

import (
	"slices"

	"github.com/delaytask/delaytask"
)

// numbers has the values of a column at the numbers that stand for them in the table.
type numbers[E ~string] []E

// A number never changes its meaning: other versions read and write the same tables.
var lateReasons = numbers[delaytask.LateReason]{
	"", delaytask.LateSlot, delaytask.LateTagLimit, delaytask.LateRetry, delaytask.LatePaused, delaytask.LateUnserved,
	delaytask.LateDatabase, delaytask.LateClock, delaytask.LateLocked, delaytask.LateFound, delaytask.LateReceiver,
	delaytask.LateProcess,
}

func (n numbers[E]) of(value E) int64 { return int64(slices.Index(n, value)) }

// at returns "" for a number of a later version.
func (n numbers[E]) at(number int64) (value E) {
	if number < int64(len(n)) {
		value = n[number]
	}
	return value
}
