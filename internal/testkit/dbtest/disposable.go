package dbtest

import (
	"context"
	"fmt"
	"testing"
)

// Disposable is a [Supervised] server of one test. It ends with the test, and when the test process is killed.
type Disposable struct{ *Supervised }

// NewDisposable starts a server of the kind, as [NewSupervised] does. Without one, it skips the test with the reason,
// or fails it when the kind is required.
func NewDisposable(tb testing.TB, kind Kind, env ...string) Disposable {
	tb.Helper()
	return NewDisposableIn(tb, kind, "", env...)
}

// NewDisposableIn is [NewDisposable] with the server's data inside of the given folder.
func NewDisposableIn(tb testing.TB, kind Kind, in string, env ...string) Disposable {
	tb.Helper()
	if sqliteAlone() {
		missing(tb, kind, named+" asks for SQLite alone")
	}
	ctx, cancel := context.WithTimeout(tb.Context(), findTimeout)
	defer cancel()
	s, err := NewSupervised(ctx, kind, in, env...)
	if err != nil {
		missing(tb, kind, fmt.Sprintf("one that may be killed is needed, and %v", err))
	}
	closeAtEnd(tb, s.Close)
	tb.Logf("tested on %s", s.server)
	return Disposable{s}
}

// Database creates a database, which ends with the server.
func (d Disposable) Database(tb testing.TB) Database {
	tb.Helper()
	db, err := d.Create(tb.Context())
	must(tb, err)
	return db
}

// Kill is [Supervised.Kill].
func (d Disposable) Kill(tb testing.TB) { tb.Helper(); must(tb, d.Supervised.Kill()) }

// Start is [Supervised.Start].
func (d Disposable) Start(tb testing.TB) { tb.Helper(); must(tb, d.Supervised.Start(tb.Context())) }

// Freeze is [Supervised.Freeze].
func (d Disposable) Freeze(tb testing.TB) { tb.Helper(); must(tb, d.Supervised.Freeze()) }

// Thaw is [Supervised.Thaw].
func (d Disposable) Thaw(tb testing.TB) { tb.Helper(); must(tb, d.Supervised.Thaw()) }
