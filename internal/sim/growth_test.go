package sim

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

var (
	length = flag.Duration("sim.growth", 0, "measure fleets of 1 to 100 nodes for so long, in their time")
	tasks  = flag.Int("sim.tasks", 0, "tasks that a fleet runs meanwhile; 0: as many as 1,000,000 a day")
)

// TestGrowth shows what the number of nodes costs the database. It takes long, so it wants to be asked for.
func TestGrowth(t *testing.T) {
	if *length == 0 {
		t.Skip("make sim-growth runs it")
	}
	n := *tasks
	if n == 0 {
		n = int(1_000_000 * *length / (24 * time.Hour))
	}
	fmt.Println("| nodes | tasks | claims | wasted rows | calls/s | each | each, idle | late p50 | p99 | max | least and largest share |")
	fmt.Println("|---|---|---|---|---|---|---|---|---|---|---|")
	for _, nodes := range []int{1, 3, 10, 30, 100} {
		synctest.Test(t, func(t *testing.T) {
			g, err := grow(nodes, n, *length)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println(g)
		})
	}
}

func TestAFleetRunsEveryTaskInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, err := grow(5, 500, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if g.Tasks != 500 || g.P99 > 5*time.Millisecond || g.Wasted > .05 || g.Least < .6 || g.Largest > 1.4 {
			t.Errorf("got %+v", g)
		}
	})
}
