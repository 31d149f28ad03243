package bench

import (
	"context"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	_ "github.com/delaytask/delaytask/sqlite"
)

const childArgument = "child"

// TestMain is also the program that measurements start once more.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArgument {
		roles["echo"] = echo
		if err := Child(context.Background(), os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(dbtest.WithServers(m))
}

// tiny makes a run so small that its figures mean nothing, and that leaves no database behind.
func tiny(t *testing.T, db dbtest.Database, only ...string) Options {
	t.Helper()
	t.Cleanup(func() {
		if left := scratches(t, db); len(left) > 0 {
			t.Errorf("it leaves %v", left)
		}
	})
	return Options{
		DSN: db.DSN, Only: only, Scale: 0.005, Repeats: 2, Rows: 1000,
		Child: []string{childArgument}, scratch: scratchOwner(db),
	}
}

// newRun returns a run without turns.
func newRun(t *testing.T, o Options) *run {
	t.Helper()
	once := o.Repeats == 0
	o = o.withDefaults()
	place, err := newPlace(o.DSN, o.scratch)
	servertest.OK(t, err)
	t.Cleanup(func() {
		if err := place.leave(); err != nil {
			t.Error(err)
		}
	})
	r := &run{Options: o, once: once, workload: o.workload(), place: place, figures: newFigures(), stolen: make(stolen)}
	r.meta.Forms, r.meta.LeftOut = make(map[string]string), make(map[string]string)
	return r
}

// echo is a role that writes its order.
func echo(_ context.Context, o order, t *child.Narrator) error {
	t.Tell(o)
	return nil
}

func TestAChildPlaysItsRole(t *testing.T) {
	r := newRun(t, Options{DSN: "sqlite:unused.db"})
	if _, err := startChild[order](t.Context(), r, order{}); err == nil ||
		!strings.Contains(err.Error(), "how to start") {
		t.Errorf("without arguments: %v", err)
	}
	r.Child = []string{childArgument}
	want := order{Role: "echo", DSN: "user:password@tcp(host)/db", Count: 7}
	p, err := startChild[order](t.Context(), r, want)
	servertest.OK(t, err)
	if got, err := p.Last(); err != nil || got != want {
		t.Errorf("it said %+v, %v", got, err)
	}
	p, err = startChild[order](t.Context(), r, order{Role: "nosuch"})
	servertest.OK(t, err)
	if _, err := p.Last(); err == nil {
		t.Error("a role that there is not was played")
	}
}
