package overview

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

const (
	freshFor  = 5 * time.Second         // from the start of a reading to the start of the next
	readLimit = 1900 * time.Millisecond // for a whole reading; a page waits for 2 s
)

// Config says what a [Reader] reads.
type Config struct {
	Store   Store
	Process Process
}

// Reader reads for all viewers of a process. It reads nothing unless it is asked.
type Reader struct {
	from  *limited
	of    Process
	cache cache // used by one reading at a time

	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu     sync.Mutex // guards what follows; no other lock is taken while it is held
	closed bool
	began  time.Time // when the last reading began
	done   chan struct{}
	last   *Snapshot // nil before the first reading that has succeeded
	failed error     // of the last reading
}

// New returns a reader. [Reader.Close] ends it.
func New(c Config) *Reader {
	r := &Reader{from: newLimited(c.Store), of: c.Process}
	r.life, r.end = context.WithCancel(context.Background())
	return r
}

// Close ends the reading in flight, and waits for it.
func (r *Reader) Close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.end()
	r.running.Wait()
}

// Reading is a snapshot as a viewer gets it.
type Reading struct {
	*Snapshot
	Age   time.Duration
	Stale report.OverviewTrouble // why the last reading has failed, "" when it has not
}

// Snapshot returns what was read last, unless that is older than 5 s. Then it reads, once for all callers. When that
// fails, or takes longer than ctx, it returns the last snapshot and says so. Before the first snapshot it returns the
// error or the cause of ctx. It returns [delaytask.ErrClosed] after Close.
func (r *Reader) Snapshot(ctx context.Context) (Reading, error) {
	done, err := r.begin()
	if err != nil {
		return Reading{}, err
	}
	select {
	case <-done:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		return Reading{}, cmp.Or(err, r.failed)
	}
	found := Reading{Snapshot: r.last, Age: time.Since(r.last.read)}
	switch {
	case err != nil:
		found.Stale = report.TroubleTimeout
	case r.failed != nil:
		found.Stale = troubleOf(r.failed)
	}
	return found, nil
}

// begin begins a reading if one is due. It returns a channel that is closed when no reading is in flight.
func (r *Reader) begin() (done <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, delaytask.ErrClosed
	case r.done != nil && !isClosed(r.done), !r.began.IsZero() && time.Since(r.began) < freshFor:
		return r.done, nil
	}
	r.began, r.done = time.Now(), make(chan struct{})
	r.running.Go(r.read)
	return r.done, nil
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// read makes one reading. It depends on no caller: the others wait for it too.
func (r *Reader) read() {
	ctx, cancel := context.WithTimeout(r.life, readLimit)
	defer cancel()
	snapshot, err := r.cache.read(ctx, r.from, &r.of)
	r.mu.Lock()
	defer r.mu.Unlock()
	defer close(r.done)
	if r.failed = err; err == nil {
		r.last = snapshot
	} else {
		r.failed = fmt.Errorf("read the overview: %w", err)
	}
}

// troubleOf returns the class of an error of a reading.
func troubleOf(err error) report.OverviewTrouble {
	switch {
	case row.Ended(err):
		return report.TroubleTimeout
	case row.ClassOf(err) == row.ClassOperator:
		return report.TroubleOperator
	default:
		return report.TroubleDatabase
	}
}
