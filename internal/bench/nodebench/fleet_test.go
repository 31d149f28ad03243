package nodebench

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/child"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	_ "github.com/delaytask/delaytask/sqlite"
)

const (
	tag   = "fleet"
	limit = time.Minute
)

// fleetOf returns a fleet without processes.
func fleetOf(t *testing.T, o order) *Fleet {
	t.Helper()
	f := NewFleet(limit, func(ctx context.Context) (*child.Process[Event], error) {
		return child.Start[Event](ctx, o, childArgument)
	})
	t.Cleanup(f.Kill)
	return f
}

// TestAFleetRunsEverything saves before the processes go, and replaces one of them.
func TestAFleetRunsEverything(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "tasks.db")
	f := fleetOf(t, order{DSN: dsn})
	save := saver(t, dsn)
	must := func(err error) {
		t.Helper()
		servertest.OK(t, err)
	}
	save(20)
	must(f.Start(t.Context(), 2))
	must(f.Serve(t.Context()))
	must(f.Ran(t.Context(), 20))
	must(f.StopOldest(1))
	must(f.Start(t.Context(), 1))
	must(f.Serve(t.Context()))
	save(20)
	must(f.Ran(t.Context(), 40))
	must(f.StopOldest(2))
	ran, claims := f.Counts()
	var all Claims
	sum := 0
	for i := range ran {
		sum += ran[i]
		all.Tried += claims[i].Tried
		all.Won += claims[i].Won
	}
	if len(ran) != 3 || sum < 40 || all.Won < 40 || all.Tried < all.Won || !f.Starts(40).Full() {
		t.Errorf("three processes ran %v and claimed %+v", ran, claims)
	}
}

// saver returns a function that saves n due tasks.
func saver(t *testing.T, dsn string) func(n int) {
	t.Helper()
	s, err := delaytask.Open(t.Context(), dsn, delaytask.Config{})
	servertest.OK(t, err)
	t.Cleanup(func() {
		if err := s.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return func(n int) {
		if _, err := s.SaveDelayTasks(t.Context(), slices.Repeat([]delaytask.Item{{Tag: tag}}, n)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAProcessThatEndsByItselfIsAnError(t *testing.T) {
	f := fleetOf(t, order{Mute: true})
	if err := f.Start(t.Context(), 1); err == nil || !strings.Contains(err.Error(), "ended by itself") {
		t.Errorf("it started: %v", err)
	}
}

func TestWhatIsStoppedBeforeItGoesHasRunNothing(t *testing.T) {
	dsn := "sqlite:" + filepath.Join(t.TempDir(), "tasks.db")
	saver(t, dsn)(20)
	f := fleetOf(t, order{DSN: dsn})
	for range 2 { // while the second one starts, the first could do something
		servertest.OK(t, f.Start(t.Context(), 1))
	}
	if f.members[0].is(func(m *member) bool { return m.serving }) {
		t.Error("it serves before it was let go")
	}
	servertest.OK(t, f.StopOldest(2))
	if ran, claims := f.Counts(); ran[0]+ran[1] != 0 || claims[0] != (Claims{}) {
		t.Errorf("it ran %v and claimed %v", ran, claims)
	}
}

func TestSpreadIsTheWorstOfTheShares(t *testing.T) {
	for _, tt := range []struct {
		ran  []int
		want float64
	}{
		{[]int{100, 100, 100}, 0},
		{[]int{90, 100, 110}, 10},
		{[]int{120, 120, 60}, 40},
		{[]int{0, 0, 300}, 200},
		{[]int{300}, 0},
		{[]int{0, 0}, 0},
		{nil, 0},
	} {
		if got := Spread(tt.ran); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.ran, got, tt.want)
		}
	}
}

func TestWastedIsTriedAndNotWonByAll(t *testing.T) {
	for _, tt := range []struct {
		claims []Claims
		want   float64
	}{
		{[]Claims{{Tried: 100, Won: 100}, {Tried: 100, Won: 90}}, 5},
		{[]Claims{{}, {Tried: 4, Won: 0}}, 100},
		{nil, 0},
	} {
		if got := Wasted(tt.claims); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.claims, got, tt.want)
		}
	}
}

const childArgument = "child"

// TestMain is also the program that a fleet starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == childArgument {
		if err := child.Serve(context.Background(), os.Stdin, os.Stdout, serveOrder); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// order is the task of a test process.
type order struct {
	DSN  string
	Mute bool // end at once, without a word
}

func serveOrder(ctx context.Context, o order, t *child.Narrator) error {
	if o.Mute {
		return nil
	}
	return Serve(ctx, o.DSN, tag, slog.New(slog.DiscardHandler), t)
}
