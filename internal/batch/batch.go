// Package batch turns many small concurrent requests into few large ones (group commit): a batch is whatever arrived
// while the last one was in flight. A lone item travels at once, and the busier it gets the larger the batches.
package batch

import (
	"errors"
	"time"
)

var (
	// ErrFull is returned by Add when the item does not fit into the queue. Nothing was queued; later there may be room.
	ErrFull = errors.New("batch: queue is full")
	// ErrClosed is returned by Add after Close.
	ErrClosed = errors.New("batch: closed")
)

// Config says how items are batched. Limits that are 0 do not limit.
type Config[T any] struct {
	// Flush handles one batch, in the order of arrival. The slice is its own. It runs on a goroutine of the coalescer, on
	// at most Flushers (default 1) at a time, and answers the items itself. It is required.
	Flush    func([]T)
	Flushers int

	// MoreAt is how many items must wait before another Flush begins beside one that is in flight. 0 and 1 mean any:
	// smaller batches, and a shorter wait.
	MoreAt int

	// Pace returns the least time between the beginnings of two flushes, unless MaxItems wait. A lone item still travels
	// at once, for the last flush is long past; a stream of them shares batches that would otherwise be very small.
	// Default: no time at all.
	Pace func() time.Duration

	MaxItems int // largest number of items in a batch; an item that counts for more travels alone
	MaxBytes int // largest sum of sizes in a batch; a larger item travels alone

	// QueueBytes bounds the sum of sizes of the items that wait; those in flight do not count. One item always fits an
	// empty queue.
	QueueBytes int

	// Count returns for how many items of MaxItems an item counts, always the same for the same item. Default: for one.
	Count func(T) int

	// Size returns the size of an item, always the same for the same item. It is required with MaxBytes or QueueBytes.
	Size func(T) int

	// Panicked is told when Flush panicked (with the value) or ended its goroutine (with nil), so that the items can be
	// answered. It is called where Flush broke off: debug.Stack shows where. The coalescer goes on with the next batch. It
	// is required.
	Panicked func(items []T, value any)
}

// Split parts a batch in two, in order.
func Split[T any](all []T, first func(T) bool) (yes, no []T) {
	for _, v := range all {
		if first(v) {
			yes = append(yes, v)
		} else {
			no = append(no, v)
		}
	}
	return yes, no
}
