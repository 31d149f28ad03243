package sim

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

var (
	length = flag.Duration("sim.growth", 0, "measure the last fleet for so long, in its time, and the others for an hour at most")
	nodes  = flag.String("sim.nodes", "1,3,10,30,100", "measure fleets of so many nodes")
)

// fleets are the numbers of nodes that were asked for.
func fleets(t *testing.T) (all []int) {
	for _, number := range strings.Split(*nodes, ",") {
		n, err := strconv.Atoi(number)
		if err != nil {
			t.Fatalf("-sim.nodes: %v", err)
		}
		all = append(all, n)
	}
	return all
}

// TestGrowth shows what the number of nodes costs the database, at the pace of 1,000,000 tasks a day. It takes long, so it wants to
// be asked for, and says after every hour of a fleet where it is.
func TestGrowth(t *testing.T) {
	if *length == 0 {
		t.Skip("make sim-growth runs it")
	}
	fmt.Println(growthHead)
	all := fleets(t)
	for i, nodes := range all {
		span := *length
		if i < len(all)-1 {
			span = min(span, time.Hour)
		}
		synctest.Test(t, func(t *testing.T) {
			g, err := grow(nodes, inTime(span), span, func(done time.Duration, ran int) {
				fmt.Fprintf(os.Stderr, "%d nodes: %v of %v, %d tasks\n", nodes, done, span, ran)
			})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println(g)
		})
	}
}

func TestADayHasAMillionTasks(t *testing.T) {
	t.Parallel()
	for span, want := range map[time.Duration]int{24 * time.Hour: 1_000_000, time.Hour: 41_666, time.Minute: 694} {
		if got := inTime(span); got != want {
			t.Errorf("%v has %d tasks, want %d", span, got, want)
		}
	}
}

func TestAFleetRunsEveryTaskInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g, err := grow(5, 500, time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		if g.Tasks != 500 || g.P99 > 5*time.Millisecond || g.Wasted > .05 || g.Least < .6 || g.Largest > 1.4 {
			t.Errorf("got %+v", g)
		}
	})
}
