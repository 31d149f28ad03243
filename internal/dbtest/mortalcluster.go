package dbtest

import (
	"context"
	"testing"
)

// MortalCluster is a [Cluster] of one test's own. It is gone when the test ends, and also when the test process is killed.
type MortalCluster struct{ *Cluster }

// NewMortalCluster starts three members, as [NewCluster] does, where DELAYTASK_REQUIRE_DB asks for the kind; else the test is
// skipped.
func NewMortalCluster(tb testing.TB, kind Kind, single bool) MortalCluster {
	tb.Helper()
	if !required(kind) {
		tb.Skipf("DELAYTASK_REQUIRE_DB does not ask for %s, and a cluster is not started unasked", kind)
	}
	ctx, cancel := context.WithTimeout(tb.Context(), findTimeout)
	defer cancel()
	c, err := NewCluster(ctx, kind, single)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := c.Close(); err != nil {
			tb.Error(err)
		}
	})
	tb.Logf("tested on %s", c)
	return MortalCluster{c}
}

// Database creates a database, which goes away with the cluster.
func (c MortalCluster) Database(tb testing.TB) Database {
	tb.Helper()
	db, err := c.Create(tb.Context())
	must(tb, err)
	return db
}

// Kill sends SIGKILL to a member and returns when it is gone.
func (c MortalCluster) Kill(tb testing.TB, member int) { tb.Helper(); must(tb, c.Cluster.Kill(member)) }

// Rejoin starts a member after Kill and returns when it has what the others have.
func (c MortalCluster) Rejoin(tb testing.TB, member int) {
	tb.Helper()
	must(tb, c.Cluster.Rejoin(member))
}
