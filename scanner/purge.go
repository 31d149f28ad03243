package scanner

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// Purge deletes finished rows whose retention is over, in small batches with pauses. So the database is free for claims
// most of the time, even while a large history is deleted. A slow batch ends the pass, and the next batch is smaller.
// While the database is busy, a pass is one batch.
type Purge struct {
	// Delete removes up to limit rows of the status whose due time is before the bound.
	Delete func(ctx context.Context, status row.Status, before row.Time, limit int) (deleted int, err error)
	Now    func() (now row.Time, ok bool) // the database's clock; not ok holds the pass back
	Keep   map[row.Status]time.Duration   // retention per final status; 0 or absent keeps for ever
	Busy   func() bool                    // the database answers other callers slowly
	Batch  int                            // rows in one statement, at most
	Limit  int                            // statements in one pass; the rest waits for the next

	size int // rows in the next statement; 0 before the first
	turn int // status that the next pass begins with: a short pass must not always serve the same one
}

const (
	slowDelete   = 100 * time.Millisecond // of a statement that other statements may wait for
	leastDeleted = 10                     // rows in a statement, however slow
)

// Pass deletes what is past its retention. An error of one status does not keep it from the others.
func (p *Purge) Pass(ctx context.Context) error {
	now, ok := p.Now()
	if !ok {
		return nil
	}
	var errs []error
	left := p.Limit
	// The statuses take turns, so that a large history of one does not hold up the others.
	statuses := p.statuses()
	for len(statuses) > 0 && left > 0 {
		var unfinished []row.Status
		for _, status := range statuses {
			began := time.Now()
			size := p.batch()
			deleted, err := p.Delete(ctx, status, now.Add(-p.Keep[status]), size)
			if err != nil {
				errs = append(errs, err)
				p.learn(slowDelete + 1) // it may have been too large, or have taken too long
				continue
			}
			left--
			if deleted >= size {
				unfinished = append(unfinished, status)
			}
			took := time.Since(began)
			if p.learn(took) || deleted > 0 && p.Busy() {
				return errors.Join(errs...)
			}
			if err := rest(ctx, took); err != nil {
				return errors.Join(append(errs, err)...)
			}
		}
		statuses = unfinished
	}
	return errors.Join(errs...)
}

// batch is how many rows the next statement may delete.
func (p *Purge) batch() int {
	if p.size == 0 {
		p.size = p.Batch
	}
	return p.size
}

// learn sizes the next batch by the time of the last one, and reports whether that was too long.
func (p *Purge) learn(took time.Duration) (slow bool) {
	switch {
	case took > slowDelete:
		p.size = max(p.size/2, min(leastDeleted, p.Batch))
		return true
	case took < slowDelete/4:
		p.size = min(2*p.size, p.Batch)
	}
	return false
}

func (p *Purge) statuses() []row.Status {
	var statuses []row.Status
	for _, status := range []row.Status{row.Completed, row.Cancelled, row.Failed} {
		if p.Keep[status] > 0 {
			statuses = append(statuses, status)
		}
	}
	if len(statuses) == 0 {
		return nil
	}
	p.turn = (p.turn + 1) % len(statuses)
	return slices.Concat(statuses[p.turn:], statuses[:p.turn])
}

// rest waits two to four times as long as the last statement took.
func rest(ctx context.Context, took time.Duration) error {
	pause := 2 * max(took, time.Millisecond)
	return sleep(ctx, pause+rand.N(pause))
}

// sleep waits, and returns the error of a context that ends meanwhile.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
