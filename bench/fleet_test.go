package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// fleetOf returns the fleet of processes that have told these events, and have ended.
func fleetOf(told ...nodeEvent) *fleet {
	f := &fleet{}
	for _, e := range told {
		f.all = append(f.all, &member{told: e})
	}
	return f
}

func TestSpreadIsTheWorstOfTheShares(t *testing.T) {
	for _, tt := range []struct {
		ran  []int
		want float64
	}{
		{[]int{100, 100, 100}, 0}, {[]int{90, 100, 110}, 10}, {[]int{120, 120, 60}, 40}, {[]int{0, 0, 300}, 200},
		{[]int{300}, 0}, {[]int{0, 0}, 0}, {nil, 0},
	} {
		f := fleetOf()
		for _, n := range tt.ran {
			f.all = append(f.all, &member{told: nodeEvent{Ran: n}})
		}
		if got := f.spread(); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.ran, got, tt.want)
		}
	}
}

func TestWastedIsTriedAndNotWonByAll(t *testing.T) {
	for want, f := range map[float64]*fleet{
		5:   fleetOf(nodeEvent{Tried: 100, Won: 100}, nodeEvent{Tried: 100, Won: 90}),
		100: fleetOf(nodeEvent{}, nodeEvent{Tried: 4}), 0: fleetOf(),
	} {
		if got := f.wasted(); got != want {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

func TestWhatIsBurnedAndLostIsCounted(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tasks := []delaytask.TaskRow{
		{ID: 1, Attempt: 1, Expected: began}, {ID: 2, Attempt: 3, Expected: began},
		{ID: 3, Attempt: 1, CrashCount: 1, Expected: began},
		{ID: 4, Attempt: 0, Expected: began},
	}
	const saved = 6
	o := tiny(dbtest.New(t, dbtest.SQLite))
	report, err := bench.Run(t.Context(), []bench.Measurement{{
		Figures: nodesRolling.Figures, Measure: func(_ context.Context, r *bench.Runner) error {
			addSteady(r, "nodes.rolling", tasks, saved, began, began, fleetOf())
			return nil
		},
	}}, o.Options)
	servertest.OK(t, err)
	for _, l := range report.Lines {
		// Four that no process started, and two that are not in the table.
		want, counts := map[string]float64{"nodes.rolling.lost": saved, "nodes.rolling.attempts_burned": 3}[l.Key]
		if counts && l.Value != want {
			t.Errorf("%s is %v, want %v", l.Key, l.Value, want)
		}
	}
}

func TestAProcessThatEndsByItselfIsAnError(t *testing.T) {
	db := dbtest.New(t, dbtest.SQLite)
	err := withFleet(t.Context(), &bench.Database{DSN: db.DSN}, "bad tag!", 1, nil) // which no scheduler registers
	if err == nil || !strings.Contains(err.Error(), "did not end well") {
		t.Errorf("it started: %v", err)
	}
}
