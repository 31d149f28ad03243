package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// An address may move while nothing ends the connections from before, as behind a balancer or at a failover. What is
// sent on them has no answer, and each would be found out by a write of its own, after seconds.

// lastAnswers is for how long answers may still come on connections from before, after a new one had an answer. The
// server may have stalled.
const lastAnswers = 100 * time.Millisecond

// findSilent gives up the connections from before a look when they lead nowhere. Then an idle one has no answer, and a
// new one has. The look has ended with err.
func (u *unanswered) findSilent(looked time.Time, err error) {
	if err == nil {
		ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
		defer cancel()
		err = u.probe(ctx, looked)
	}
	wasSent := isOf(err, row.ClassUnknown) || errors.Is(err, errSetUp)
	if !wasSent || !errors.Is(err, context.DeadlineExceeded) || !u.newAnswers() {
		return
	}
	u.sleep(lastAnswers)
	u.servers.silent(looked)
	for _, w := range u.all() {
		if w.opened.Before(looked) {
			w.giveUp(errSilent)
		}
	}
}

// newAnswers reports whether a new connection has an answer. It gives up those that are idle in the pool then.
func (u *unanswered) newAnswers() bool {
	idle := u.servers.takeIdle() // else the pool would hand out one of these
	if len(idle) > 0 {
		discard(idle[0]) // the pool may be full
		idle = idle[1:]
	}
	err := u.askIn(context.WithValue(context.Background(), newKey{}, true), echo)
	for _, conn := range idle {
		if err == nil {
			discard(conn)
		} else {
			_ = conn.Close() // only gives it back
		}
	}
	return err == nil
}

func echo(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "DO 1")
	return err
}
