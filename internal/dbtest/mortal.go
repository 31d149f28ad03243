package dbtest

import (
	"context"
	"fmt"
	"testing"
)

// Mortal is a [Victim] of one test's own. It is gone when the test ends, and also when the test process is killed.
type Mortal struct{ *Victim }

// NewMortal starts a server of the kind, as [NewVictim] does. Where there is none the test is skipped with the reason, or fails
// when the kind is required.
func NewMortal(tb testing.TB, kind Kind) Mortal { tb.Helper(); return NewMortalIn(tb, kind, "") }

// NewMortalIn is [NewMortal] with the server's data inside of the given folder.
func NewMortalIn(tb testing.TB, kind Kind, in string) Mortal {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), findTimeout)
	defer cancel()
	v, err := NewVictim(ctx, kind, in)
	if err != nil {
		missing(tb, kind, fmt.Sprintf("one that may be killed is needed, and %v", err))
	}
	tb.Cleanup(func() {
		if err := v.Close(); err != nil {
			tb.Error(err)
		}
	})
	tb.Logf("tested on %s", v.server)
	return Mortal{v}
}

// Database creates a database, which goes away with the server.
func (m Mortal) Database(tb testing.TB) Database {
	tb.Helper()
	db, err := m.Create(tb.Context())
	must(tb, err)
	return db
}

// Kill sends SIGKILL and returns when the process is gone.
func (m Mortal) Kill(tb testing.TB) { tb.Helper(); must(tb, m.Victim.Kill()) }

// Start starts the server after Kill and returns when it answers.
func (m Mortal) Start(tb testing.TB) { tb.Helper(); must(tb, m.Victim.Start(tb.Context())) }

// Freeze sends SIGSTOP: the server takes connections and answers nothing.
func (m Mortal) Freeze(tb testing.TB) { tb.Helper(); must(tb, m.Victim.Freeze()) }

// Thaw sends SIGCONT.
func (m Mortal) Thaw(tb testing.TB) { tb.Helper(); must(tb, m.Victim.Thaw()) }

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
