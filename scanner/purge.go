package scanner

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// Purge deletes finished rows whose retention is over, in small batches with pauses, so that claims find the database free for
// most of the time even while a large history is being deleted.
type Purge struct {
	// Delete removes up to limit rows of the status whose due time is before the bound.
	Delete func(ctx context.Context, status row.Status, before row.Time, limit int) (deleted int, err error)
	Now    func() (now row.Time, ok bool) // the database's clock; not ok holds the pass back
	Keep   map[row.Status]time.Duration   // retention per final status; 0 or absent keeps for ever
	Batch  int                            // rows in one statement
	Limit  int                            // statements in one pass; the rest waits for the next
}

// Pass deletes what is past its retention. An error of one status does not keep it from the others.
func (p *Purge) Pass(ctx context.Context) error {
	now, ok := p.Now()
	if !ok {
		return nil
	}
	var errs []error
	left := p.Limit
	// The statuses take turns, so that a large history of one does not keep the others waiting for passes.
	statuses := p.statuses()
	for len(statuses) > 0 && left > 0 {
		var unfinished []row.Status
		for _, status := range statuses {
			began := time.Now()
			deleted, err := p.Delete(ctx, status, now.Add(-p.Keep[status]), p.Batch)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			left--
			if deleted >= p.Batch {
				unfinished = append(unfinished, status)
			}
			if err := rest(ctx, time.Since(began)); err != nil {
				return errors.Join(append(errs, err)...)
			}
		}
		statuses = unfinished
	}
	return errors.Join(errs...)
}

func (p *Purge) statuses() []row.Status {
	var statuses []row.Status
	for _, status := range []row.Status{row.Completed, row.Cancelled, row.Failed} {
		if p.Keep[status] > 0 {
			statuses = append(statuses, status)
		}
	}
	return statuses
}

// rest waits two to four times as long as the last statement took: a slow database is left alone for longer.
func rest(ctx context.Context, took time.Duration) error {
	pause := 2 * max(took, time.Millisecond)
	timer := time.NewTimer(pause + rand.N(pause))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
