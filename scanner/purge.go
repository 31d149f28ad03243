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
	// Tags returns the tags that have rows of the status whose due time is before the bound.
	Tags func(ctx context.Context, status row.Status, before row.Time) ([]string, error)
	// Delete removes up to limit of these rows, tag by tag, and returns the tags that it did not come to the end of.
	Delete func(ctx context.Context, status row.Status, tags []string, before row.Time, limit int) (
		deleted int, left []string, err error)
	Now   func() (now row.Time, ok bool) // the database's clock; not ok holds the pass back
	Keep  map[row.Status]time.Duration   // retention per final status; 0 or absent keeps for ever
	Busy  func() bool                    // the database answers other callers slowly
	Batch int                            // rows in one statement, at most
	Limit int                            // statements in one pass; the rest waits for the next

	size int // rows in the next statement; 0 before the first
	turn int // status that the next pass begins with: a short pass must not always serve the same one

	left map[row.Status][]string // tags that still have rows to delete
	look map[row.Status]row.Time // when the others are read next
}

const (
	slowDelete   = 100 * time.Millisecond // of a statement that other statements may wait for
	leastDeleted = 10                     // rows in a statement, however slow

	// Reading the tags takes a step of the index for each tag of the table. A status is read after a hundredth of its
	// retention, or after mostUnread.
	mostUnread = time.Minute
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
			if err := p.read(ctx, status, now); err != nil {
				errs = append(errs, err)
				continue
			}
			if len(p.left[status]) == 0 {
				continue
			}
			began := time.Now()
			deleted, rest, err := p.Delete(ctx, status, p.left[status], now.Add(-p.Keep[status]), p.batch())
			if err != nil {
				errs = append(errs, err)
				p.learn(slowDelete + 1) // it may have been too large, or have taken too long
				continue
			}
			left--
			if p.left[status] = rest; len(rest) > 0 {
				unfinished = append(unfinished, status)
			}
			took := time.Since(began)
			if p.learn(took) || deleted > 0 && p.Busy() {
				return errors.Join(errs...)
			}
			if err := pause(ctx, took); err != nil {
				return errors.Join(append(errs, err)...)
			}
		}
		statuses = unfinished
	}
	return errors.Join(errs...)
}

// read reads the tags of a status when none are left of the last read, and that was long enough ago.
func (p *Purge) read(ctx context.Context, status row.Status, now row.Time) (err error) {
	if len(p.left[status]) > 0 || now < p.look[status] {
		return nil
	}
	if p.left == nil {
		p.left, p.look = map[row.Status][]string{}, map[row.Status]row.Time{}
	}
	if p.left[status], err = p.Tags(ctx, status, now.Add(-p.Keep[status])); err == nil {
		p.look[status] = now.Add(min(mostUnread, p.Keep[status]/100))
	}
	return err
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

// pause waits two to four times as long as the last statement took.
func pause(ctx context.Context, took time.Duration) error {
	least := 2 * max(took, time.Millisecond)
	return sleep(ctx, least+rand.N(least))
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
