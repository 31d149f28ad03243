package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/store"
)

// lane bounds how many writes of one kind are sent at once, so that none waits behind another kind.
//
// A SQLite file has one writer at a time. There a lane sends one write at a time, and all lanes take turns, both in the
// order of statements. SQLite itself picks the next writer by chance. Appending rows in the order of their ids and due
// times costs half of what inserting them in between does.
type lane struct {
	*connections
	kind  use
	slots chan struct{} // holds one for each write
	turn  chan struct{} // taken by the lane that writes, nil where all may
	file  *sameFile     // nil for a server
}

func newLane(c *connections, kind use, size int) *lane {
	return &lane{connections: c, kind: kind, slots: make(chan struct{}, size)}
}

// do runs f on a connection of the lane, and classifies its error. What fails before f sends anything was not applied.
func (l *lane) do(ctx context.Context, op string, f func(context.Context, *sql.Conn) error) error {
	ctx, cancel := withDeadline(ctx)
	defer cancel()
	departure := store.DepartureOf(ctx)
	departure.Waits()
	select {
	case <-l.closed:
		return notApplied(op, errClosed)
	case <-ctx.Done():
		return notApplied(op, fmt.Errorf("wait for a connection: %w", ctx.Err()))
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	}
	if l.turn != nil {
		select {
		case l.turn <- struct{}{}:
			defer func() { <-l.turn }()
		case <-ctx.Done():
			return notApplied(op, fmt.Errorf("wait for other writes: %w", ctx.Err()))
		}
	}
	r, err := l.take(ctx, l.kind)
	if err != nil {
		return notSent(op, err)
	}
	if err := l.file.check(ctx, r.conn); err != nil {
		l.give(l.kind, r)
		return err
	}
	if err := departure.Sends(); err != nil {
		l.give(l.kind, r)
		return notApplied(op, err)
	}
	began := time.Now()
	inside, begun := l.unanswered.begin(ctx, r.session)
	err = outcome(inside, f(inside, r.conn))
	l.note(l.kind, time.Since(began))
	l.release(l.kind, r, err, l.unanswered.end(begun))
	if err == nil { // the file may have lost its name during the write
		if gone := l.file.check(ctx, nil); gone != nil {
			return afterWrite(op, gone)
		}
	}
	return classify(op, err)
}

// execute runs one statement on a connection of the lane, and returns how many rows it has changed.
func (l *lane) execute(ctx context.Context, op string, c clause) (n int, err error) {
	err = l.do(ctx, op, func(ctx context.Context, conn *sql.Conn) (err error) {
		n, err = execute(ctx, conn, c)
		return err
	})
	return n, err
}

// write is execute for a statement that may change any number of rows.
func (l *lane) write(ctx context.Context, op string, c clause) error {
	_, err := l.execute(ctx, op, c)
	return err
}
