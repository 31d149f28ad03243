// Package batch turns many small concurrent requests into few large ones (group commit): a batch holds what arrived
// while the last one was in flight. A single item is flushed at once; under load the batches grow.
package batch

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"
)

var (
	// ErrFull is returned by Add when the item does not fit into the queue. Nothing was queued; later there may be
	// room.
	ErrFull = errors.New("batch: queue is full")
	// ErrClosed is returned by Add after Close.
	ErrClosed = errors.New("batch: closed")
)

// Config says how items are batched. Limits that are 0 do not limit.
type Config[T any] struct {
	// Flush handles one batch, in the order of arrival, and answers the items. It owns the slice. At most Flushers
	// (default 1) run at a time, on goroutines of the coalescer. It is required.
	Flush    func([]T)
	Flushers int

	// MoreAt is how many items must wait before another Flush begins beside one that is in flight. 0 and 1 mean any:
	// smaller batches, and a shorter wait.
	MoreAt int

	// Pace returns the least time between the beginnings of two flushes, unless MaxItems wait. A single item after a
	// pause is still flushed at once. Items of a stream share batches that would otherwise be very small. Default: 0.
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

	// Panicked is called when Flush panicked (with the value) or ended its goroutine (with nil), so that it can answer
	// the items. It runs on the stack of the panic: debug.Stack shows where. The coalescer goes on with the next batch.
	// It is required.
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

// Pages cuts items into pages of at most so many items and bytes, in order. An item that is larger is a page by itself.
func Pages[T any](items []T, most, bytes int, size func(*T) int) (pages [][]T) {
	for len(items) > 0 {
		n := 1
		for sum := size(&items[0]); n < min(len(items), most); n++ {
			if sum += size(&items[n]); sum > bytes {
				break
			}
		}
		pages = append(pages, items[:n:n])
		items = items[n:]
	}
	return pages
}

// Coalescer gathers items and hands them to Flush in batches. Its goroutines start when there is something to flush and
// end when there is nothing left, so an idle coalescer costs nothing and needs no Close.
type Coalescer[T any] struct {
	cfg Config[T]

	mu       sync.Mutex
	queue    []T
	count    int           // sum of the counts in queue
	bytes    int           // sum of the sizes in queue
	flushers int           // running now
	began    time.Time     // when the last batch was taken
	wake     chan struct{} // ends the wait of a flusher that keeps the pace
	closed   bool
	idle     chan struct{} // closed when closed and the last flusher has ended
}

// New returns a coalescer that works as cfg says. It panics when a function that is required is missing.
func New[T any](cfg Config[T]) *Coalescer[T] {
	cfg.Flushers = max(cfg.Flushers, 1)
	if cfg.Size == nil {
		cfg.Size = func(T) int { return 0 }
	}
	if cfg.Count == nil {
		cfg.Count = func(T) int { return 1 }
	}
	if cfg.Flush == nil || cfg.Panicked == nil {
		panic("batch: Flush and Panicked are required")
	}
	return &Coalescer[T]{cfg: cfg, idle: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// Add queues the item and returns without waiting. It returns [ErrFull] when the item would exceed the queue's bound,
// and [ErrClosed] after Close.
func (c *Coalescer[T]) Add(item T) error {
	size := c.cfg.Size(item)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	if c.cfg.QueueBytes > 0 && len(c.queue) > 0 && c.bytes+size > c.cfg.QueueBytes {
		return ErrFull
	}
	c.queue = append(c.queue, item)
	c.count += c.cfg.Count(item)
	c.bytes += size
	c.wakeIfUrgent()
	if c.flushers == 0 || c.flushers < c.cfg.Flushers && len(c.queue) >= c.cfg.MoreAt {
		c.flushers++
		go c.run()
	}
	return nil
}

// Close takes no further items and waits until those taken have been flushed. When ctx ends first it returns the
// context's cause; the flushing goes on, and Close may be called again to wait for it.
func (c *Coalescer[T]) Close(ctx context.Context) error {
	c.mu.Lock()
	if !c.closed {
		c.closed = true
		c.wakeIfUrgent()
		c.signalIdle()
	}
	c.mu.Unlock()
	select {
	case <-c.idle:
		return nil
	default:
	}
	select {
	case <-c.idle:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (c *Coalescer[T]) signalIdle() {
	if c.closed && c.flushers == 0 {
		close(c.idle)
	}
}

// run flushes batch after batch until nothing is queued. After a panic of a flush another goroutine goes on.
func (c *Coalescer[T]) run() {
	var batch []T
	defer func() {
		if batch != nil {
			c.cfg.Panicked(batch, recover())
			go c.run()
		}
	}()
	for batch = c.next(); batch != nil; batch = c.next() {
		c.cfg.Flush(batch)
	}
}

// next yields to other goroutines first and then takes what they have added. Callers that the last batch has answered
// often come back at once. Together with those that waited they need one flush; in two groups that take turns they need
// two. If no goroutine is ready, yielding costs nothing.
func (c *Coalescer[T]) next() []T {
	runtime.Gosched()
	for {
		batch, wait := c.take()
		if wait <= 0 {
			return batch
		}
		select {
		case <-time.After(wait):
		case <-c.wake:
		}
	}
}

// untilNext returns how long it is until another batch may be taken.
func (c *Coalescer[T]) untilNext() time.Duration {
	if c.cfg.Pace == nil || c.urgent() {
		return 0
	}
	select {
	case <-c.wake: // its items have been taken since
	default:
	}
	return c.cfg.Pace() - time.Since(c.began)
}

// urgent reports whether the pace does not count: a full batch waits, or the coalescer is closing.
func (c *Coalescer[T]) urgent() bool {
	return c.closed || c.cfg.MaxItems > 0 && c.count >= c.cfg.MaxItems
}

func (c *Coalescer[T]) wakeIfUrgent() {
	if !c.urgent() {
		return
	}
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// take returns the next batch, or how long it is too early for it. A nil batch says that nothing is queued; then the
// calling flusher counts as ended.
func (c *Coalescer[T]) take() (batch []T, wait time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		c.flushers--
		c.signalIdle()
		return nil, 0
	}
	if wait := c.untilNext(); wait > 0 {
		return nil, wait
	}
	c.began = time.Now()
	n, count, size := c.fit()
	c.count -= count
	c.bytes -= size
	if n == len(c.queue) {
		batch = c.queue
		c.queue = make([]T, 0, n) // under load the next batch is about as large
		return batch, 0
	}
	// Copied and cleared, or the rest of the queue would keep alive what this batch holds.
	batch = slices.Clone(c.queue[:n])
	clear(c.queue[:n])
	c.queue = c.queue[n:]
	return batch, 0
}

// fit returns how many items from the head of the queue make up the next batch, for how many they count, and their
// size.
func (c *Coalescer[T]) fit() (n, count, size int) {
	for n < len(c.queue) {
		more, larger := count+c.cfg.Count(c.queue[n]), size+c.cfg.Size(c.queue[n])
		if n > 0 && (c.cfg.MaxItems > 0 && more > c.cfg.MaxItems || c.cfg.MaxBytes > 0 && larger > c.cfg.MaxBytes) {
			break
		}
		n, count, size = n+1, more, larger
	}
	return n, count, size
}
