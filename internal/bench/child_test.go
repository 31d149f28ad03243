package bench

import (
	"context"
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/child"
)

// echo is a role that tells what it was asked.
func echo(_ context.Context, o order, t *child.Teller) error {
	t.Tell(o)
	return nil
}

func TestAChildPlaysItsRole(t *testing.T) {
	o := tiny("sqlite:unused.db")
	r := newRun(t, o)
	if _, err := startChild[order](t.Context(), r, order{}); err == nil || !strings.Contains(err.Error(), "how to start") {
		t.Errorf("without arguments: %v", err)
	}
	r.Child = []string{childArgument}
	want := order{Role: "echo", DSN: "user:password@tcp(host)/db", Count: 7}
	p, err := startChild[order](t.Context(), r, want)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.Last(); err != nil || got != want {
		t.Errorf("it said %+v, %v", got, err)
	}
	p, err = startChild[order](t.Context(), r, order{Role: "nosuch"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Last(); err == nil {
		t.Error("a role that there is not was played")
	}
}
