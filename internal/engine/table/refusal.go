package table

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// Policy says how a writer goes on with the rows of a statement that has failed. Each function returns the rows that
// the writer sends again after a pause. Without a function these are all rows.
type Policy[T any] struct {
	Locked    func(rows []T) (again []T) // another transaction holds one of the rows
	Refused   func(rows []T) (again []T) // the database refuses one of the rows for what it holds
	Lost      func(rows []T) (again []T) // the reply was lost: the statement may still be applied
	Unapplied func(rows []T) (again []T) // the database was not there, or could not do it now
	Operator  func(rows []T) (again []T) // an operator has to mend the database
}

// IsLocked reports whether another transaction holds the row that a statement is about.
func IsLocked(err error) bool { return err != nil && row.ClassOf(err) == row.ClassLocked }

// WhileLocked calls a statement again while another transaction holds its row, n times at most. That may be a process
// that only asks whether the row is locked.
func WhileLocked(ctx context.Context, n int, call func() error) (err error) {
	for i := range n {
		if i > 0 && !lifecycle.Sleep(ctx, lifecycle.Backoff(i)) {
			break
		}
		if err = call(); !IsLocked(err) {
			break
		}
	}
	return err
}

// Halves parts rows when the database refuses one of them.
func Halves[T any](rows []T) [][]T { return [][]T{rows[:len(rows)/2], rows[len(rows)/2:]} }

// EachAlone sends each row in a statement of its own.
func EachAlone[T any](rows []T, send func([]T) (again []T)) (again []T) {
	for i := range rows {
		again = append(again, send([]T{rows[i]})...)
	}
	return again
}

// SplitLocked asks which of the rows other transactions hold. With an error all rows count as free.
func SplitLocked[T any](ctx context.Context, t *Table, rows []T, id func(T) int64) (held, free []T, err error) {
	found, err := t.Store.Locked(ctx, row.IDsOf(rows, id))
	if err != nil {
		t.Failed("looking for locked rows", err)
		return nil, rows, err
	}
	locked := make(map[int64]bool, len(found))
	for _, f := range found {
		locked[f] = true
	}
	held, free = batch.Split(rows, func(r T) bool { return locked[id(r)] })
	return held, free, nil
}

// LockBackoff is how long a row is left out that has met a lock so often. It grows, so that one open transaction costs
// little.
func LockBackoff(tries int) time.Duration {
	return min(50*time.Millisecond<<min(tries, 8), 5*time.Second)
}

// errHeld is what the statement would end with, after a wait.
func errHeld(op string) error {
	return &row.Error{Class: row.ClassLocked, Op: op, Err: errors.New("another transaction holds the row")}
}

// askingFirst writes unless a row is locked. Only within [LockCheckFor] after a lock was met it asks for locks, and
// writes on connections of its own: a range may be locked, which nothing tells.
func askingFirst[T any](
	ctx context.Context, t *Table, op string, rows []T, id func(T) int64, write func(context.Context) error,
) error {
	if t.Locks.Lately() {
		if held, _, _ := SplitLocked(ctx, t, rows, id); len(held) > 0 {
			return errHeld(op)
		}
		ctx = store.Apart(ctx)
	}
	err := write(ctx)
	t.Locks.NoteIn(err)
	return err
}

// LockWait is longer than a statement waits for a locked row.
const LockWait = 2500 * time.Millisecond

// MayPass reports whether err is one of the store that may not come again, and ctx has not ended.
func MayPass(ctx context.Context, err error) bool {
	_, ofStore := errors.AsType[*row.Error](err)
	return (ofStore && MayRetry(err) || row.Ended(err)) && ctx.Err() == nil
}

// OnlyRow is what a read of one row has found.
func OnlyRow(rows []row.Row, broken []row.Broken, err error) (*row.Row, error) {
	switch {
	case err != nil:
		return nil, err
	case len(rows) > 0:
		return &rows[0], nil
	case len(broken) > 0:
		return nil, BrokenError(broken[0])
	default:
		return nil, delaytask.ErrNotFound
	}
}

// BrokenError is what a caller is told of a row that cannot be decoded.
func BrokenError(b row.Broken) error { return fmt.Errorf("%w: %s", delaytask.ErrBroken, b.Reason) }

// MayRetry reports whether another try, or reading back, can help.
func MayRetry(err error) bool {
	return row.IsOneOf(err, row.ClassNotApplied, row.ClassLocked, row.ClassUnknown)
}

// ChangeTries bounds how often a change is tried against a row that keeps changing.
const ChangeTries = 20
