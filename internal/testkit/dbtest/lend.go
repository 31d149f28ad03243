package dbtest

import (
	"context"
	"sync"
	"testing"
)

// Lender lends prepared databases to one test after the other, because making one takes longer than most tests. A test
// that changes more than rows takes a database of its own from [New]. The databases are dropped when the package has
// run.
type Lender struct {
	Prepare func(context.Context, Database) error // a new one
	Empty   func(context.Context, Database) error // one that a test has given back

	mu   sync.Mutex
	free map[*server][]Database
}

var (
	lentMu  sync.Mutex
	lentOut []func() error // drops what was made to be lent
)

// Each is [Each] with a database that is lent.
func (l *Lender) Each(t *testing.T, f func(t *testing.T, db Database)) {
	t.Helper()
	onEach(t, everyKind, l.lend, f)
}

// MySQLs is [MySQLs] with a database that is lent.
func (l *Lender) MySQLs(t *testing.T, f func(t *testing.T, db Database)) {
	t.Helper()
	onEach(t, everyKind[1:], l.lend, f)
}

// New is [New] with a database that is lent.
func (l *Lender) New(tb testing.TB, kind Kind) Database {
	tb.Helper()
	return l.lend(first(tb, kind), tb)
}

func (l *Lender) lend(s *server, tb testing.TB) Database {
	tb.Helper()
	db, used := l.take(s)
	if used {
		must(tb, l.Empty(tb.Context(), db))
	} else {
		var drop func() error
		var err error
		db, drop, err = s.create(tb.Context())
		must(tb, err)
		lentMu.Lock()
		lentOut = append(lentOut, drop)
		lentMu.Unlock()
		must(tb, l.Prepare(tb.Context(), db))
	}
	tb.Cleanup(func() {
		if !tb.Failed() { // a failed test may have left anything behind
			l.mu.Lock()
			defer l.mu.Unlock()
			l.free[s] = append(l.free[s], db)
		}
	})
	return db
}

func (l *Lender) take(s *server) (db Database, used bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.free == nil {
		l.free = make(map[*server][]Database)
	}
	if free := l.free[s]; len(free) > 0 {
		db, l.free[s] = free[len(free)-1], free[:len(free)-1]
		return db, true
	}
	return db, false
}
