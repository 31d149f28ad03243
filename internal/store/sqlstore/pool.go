package sqlstore

import (
	"context"
	"database/sql"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"
)

// pool is what reads take their connections from. Writes open theirs from it, and keep them.
type pool struct {
	*sqlx.DB
	*waitlist // nil: a file, whose connections cost little

	mu       sync.Mutex
	reads    int // with those that wait
	holding  int // reads that have a connection
	entering int // reads that are about to take an idle one
	most     int // connections of this process, with the ones for writes; 0: no limit but the pool's
}

// read runs f on a connection, and discards that when it would repeat f's error.
func (p *pool) read(ctx context.Context, f func(*sql.Conn) error) error {
	return p.borrow(ctx, func(conn *sql.Conn) (keep bool, err error) {
		err = f(conn)
		return !sessionKeeps(err), err
	})
}

// borrow runs f on a connection, and discards that unless f keeps it.
func (p *pool) borrow(ctx context.Context, f func(*sql.Conn) (keep bool, err error)) error {
	p.count(1, 0, 0)
	defer p.freed()
	conn, err := p.take(ctx)
	if err != nil {
		p.count(-1, 0, 0)
		return err
	}
	defer p.count(-1, -1, 0)
	began := time.Now()
	keep, err := f(conn)
	if p.waitlist != nil {
		p.tempo.note(time.Since(began))
	}
	if !keep {
		discard(conn)
		return err
	}
	_ = conn.Close() // only gives it back
	return err
}

// take returns an idle connection or, after a wait, a new one. Where the server has none left, one will do that another
// read has and gives back.
func (p *pool) take(ctx context.Context) (*sql.Conn, error) {
	for {
		entering := 0
		p.until(ctx, true, func() bool {
			entering = p.enter()
			return entering > 0
		})
		if entering == 0 && p.hasAll() && ctx.Err() == nil {
			continue
		}
		conn, err := p.Conn(ctx)
		if err == nil {
			p.count(0, 1, -entering)
			return conn, nil
		}
		held := p.count(0, 0, -entering)
		if !isFull(err) {
			return nil, err
		}
		if p.tempo.restart(); held == 0 {
			return nil, err
		}
	}
}

// enter reserves an idle connection, and returns how many: 0 where others may give one back first.
func (p *pool) enter() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reads > 1 && p.Stats().Idle <= p.entering {
		return 0
	}
	if p.Stats().OpenConnections == 0 {
		p.tempo.restart()
	}
	p.entering++
	return 1
}

// bound changes how many connections this process has at most. One read has one all the same.
func (p *pool) bound(most int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.most = most
}

// hasAll reports whether a read has to wait until another one gives its connection back.
func (p *pool) hasAll() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most > 0 && p.holding+p.entering > 0 && p.Stats().OpenConnections >= p.most
}

// count returns how many reads hold a connection, after a change.
func (p *pool) count(reads, holding, entering int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reads += reads
	p.holding += holding
	p.entering += entering
	return p.holding
}
