package sqlstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/row"
)

// session names a connection of a server.
type session struct {
	id     string
	server string // as readings name it
	opened time.Time
}

// write is a write on a connection.
type write struct {
	session
	timer  *time.Timer
	giveUp context.CancelCauseFunc

	mu    sync.Mutex // held while the write is being cut off; the mutex of unanswered is taken before it
	ended bool
	cut   bool
}

type writeKey struct{} // of the write of a context

var errSilent = errors.New("the connection had no answer, while a new one had")

// outcome returns the error of a write, in which one of its statements may have been cut off, or given up. What was cut
// off was not applied. What is classified stays as it is.
func outcome(ctx context.Context, err error) error {
	const interrupted = 1317
	w, _ := ctx.Value(writeKey{}).(*write)
	if _, classified := errors.AsType[*row.Error](err); err == nil || w == nil || classified {
		return err
	}
	if errors.Is(context.Cause(ctx), errSilent) {
		return &row.Error{Class: row.ClassUnknown, Op: "wait for an answer", Hint: hintNoAnswer, Err: errSilent}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if e, ok := errors.AsType[*mysql.MySQLError](err); w.cut && ok && e.Number == interrupted {
		return &row.Error{Class: row.ClassLocked, Op: "wait for a lock", Err: err}
	}
	return err
}
