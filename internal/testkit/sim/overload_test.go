//go:build !race

package sim

import (
	"context"
	"flag"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/memstore"
)

var overloads = flag.Bool("sim.overload", false,
	"measure fleets whose database is asked for 10 % to 300 % of what it can")

// crowd is a fleet on a server.
type crowd struct {
	nodes, slots int
	slower       time.Duration
	capacity     float64 // tasks a second, about the most that the fleet runs
	length       time.Duration
}

// TestNoOverloadCostsThroughput shows what fleets run whose database can do less than they are asked for. It takes
// minutes, so it runs with its flag only.
func TestNoOverloadCostsThroughput(t *testing.T) {
	if !*overloads {
		t.Skip("make sim-overload runs it")
	}
	fmt.Println(overloadHead)
	for _, c := range []crowd{
		{nodes: 30, slots: 64, slower: 10, capacity: 1200, length: 20 * time.Second},
		{nodes: 100, slots: 64, slower: 4, capacity: 1400, length: 20 * time.Second},
	} {
		c.under(t, .1, .3, .5, .8, 1, 1.25, 1.5, 2, 3)
	}
}

func TestNoShortOverloadCostsThroughput(t *testing.T) {
	t.Parallel()
	c := crowd{nodes: 30, slots: 16, slower: 10, capacity: 800, length: 10 * time.Second}
	c.under(t, .8, 1, 2.25)
}

// under offers loads, each a share of the capacity. No load must cost more than a tenth of what less load has shown to
// be possible. What the database can do easily is done in time.
func (c crowd) under(t *testing.T, loads ...float64) {
	best := 0.
	for _, load := range loads {
		var o offered
		synctest.Test(t, func(t *testing.T) {
			var err error
			if o, err = c.offer(load * c.capacity); err != nil {
				t.Fatal(err)
			}
		})
		if o.show(t); o.goodput < .9*math.Min(o.rate, best) {
			t.Errorf("of %.0f tasks a second %.0f are done, and %.0f of fewer", o.rate, o.goodput, best)
		}
		if load <= .8 && o.Most > time.Second {
			t.Errorf("at %.0f %% of the capacity a task was %v late", 100*load, o.Most)
		}
		left := max(0, o.rate-o.goodput) * c.length.Seconds()
		if o.drained.Seconds() > 3+left/(.8*o.goodput) {
			t.Errorf("the backlog of %.0f tasks took %v", left, o.drained)
		}
		best = math.Max(best, o.goodput)
	}
}

// offered is what became of a load.
type offered struct {
	growth
	rate, goodput float64       // tasks a second that fell due, and that were completed while it lasted
	drained       time.Duration // from its end until all had run
}

// offer lets so many tasks a second fall due for a while, which were saved before. The caller is in a bubble.
func (c crowd) offer(rate float64) (o offered, err error) {
	<-time.After(time.Until(begins))
	f := &fleet{db: memstore.New(), ran: make([]int, c.nodes), slots: c.slots, server: newServer(2, c.slower)}
	if err := f.assemble(); err != nil {
		return o, err
	}
	<-time.After(15 * time.Second)
	began, tasks := time.Now().Add(5*time.Second), int(rate*c.length.Seconds())
	source := ids.NewSource(ids.RandomNode(), time.Now)
	for i := range tasks {
		due := row.At(began.Add(c.length * time.Duration(i) / time.Duration(tasks)))
		r := row.Row{ID: source.Next(), Tag: "task", TTR: 15 * time.Second, MaxAttempts: 1, Expected: due, Due: due}
		if err := f.db.Insert(context.Background(), nil, []row.Row{r}); err != nil {
			return o, err
		}
	}
	<-time.After(time.Until(began.Add(c.length / 4)))
	settled, calls := f.server.done(), f.calls()
	span := c.length * 3 / 4
	<-time.After(span)
	o.rate, o.goodput = rate, float64(f.server.done()-settled)/span.Seconds()
	perSecond := float64(f.calls()-calls) / span.Seconds()
	end := time.Now()
	for f.count() < tasks && time.Since(end) < time.Hour {
		<-time.After(100 * time.Millisecond)
	}
	o.drained, o.growth = time.Since(end), f.sum(tasks)
	o.Nodes, o.Calls = c.nodes, perSecond
	if ran := f.count(); ran != tasks {
		err = fmt.Errorf("%d of %d tasks ran", ran, tasks)
	}
	for _, e := range f.engines {
		_ = e.Stop(context.Background())
	}
	f.server.serving.Wait()
	return o, err
}

// overloadHead is the head of the table with a line for each load.
const overloadHead = "| nodes | due/s | done/s | late p99 | max | backlog gone after | wasted rows | calls/s |\n" +
	"|---|---|---|---|---|---|---|---|"

func (o offered) show(t *testing.T) {
	if *overloads {
		fmt.Println(o)
	} else {
		t.Log(o)
	}
}

func (o offered) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
	return fmt.Sprintf("| %d | %.0f | %.0f | %v | %v | %v | %.2f %% | %.0f |", o.Nodes, o.rate, o.goodput,
		round(o.P99), round(o.Most), round(o.drained), 100*o.Wasted, o.Calls)
}
