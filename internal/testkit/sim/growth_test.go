package sim

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/engine/find"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/processor"
)

var length = flag.Duration("sim.growth", 0,
	"measure the last fleet for so long, in its time, and the others for an hour at most")

// TestGrowth shows what the number of nodes costs the database, at the pace of 1,000,000 tasks a day. It takes long, so
// it runs with its flag only, and reports its progress after every hour of a fleet.
func TestGrowth(t *testing.T) {
	if *length == 0 {
		t.Skip("make sim-growth runs it")
	}
	fmt.Println(growthHead)
	const aDay = 1_000_000 // tasks
	for _, nodes := range []int{1, 3, 10, 30, 100} {
		span := *length
		if nodes < 100 {
			span = min(span, time.Hour)
		}
		synctest.Test(t, func(t *testing.T) {
			g, err := grow(nodes, int(aDay*span.Hours()/24), span, func(done time.Duration, ran int) {
				fmt.Fprintf(os.Stderr, "%d nodes: %v of %v, %d tasks\n", nodes, done, span, ran)
			})
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
		g, err := grow(5, 500, time.Minute, nil)
		if err != nil {
			t.Fatal(err)
		}
		if g.Tasks != 500 || g.P99 > 5*time.Millisecond || g.Wasted > .05 || g.Least < .6 || g.Largest > 1.4 {
			t.Errorf("got %+v", g)
		}
	})
}

// growth is what a number of nodes on one database costs it, without any fault.
type growth struct {
	Nodes   int
	Tasks   int
	Length  time.Duration
	Claims  int     // statements
	Wasted  float64 // share of the rows asked for that another node had
	Calls   float64
	PerNode float64
	Idle    float64 // before the first task
	Median  time.Duration
	P99     time.Duration
	Most    time.Duration
	Least   float64 // tasks that a node has run, divided by its fair share
	Largest float64
}

// fleet is a number of nodes in a bubble whose tasks are spread evenly over a time.
type fleet struct {
	db      *memstore.Store
	engines []*engine.Engine
	stores  []*faultstore.Store
	slots   int     // of each node
	server  *server // nil: nothing but the way to the database takes time

	mu    sync.Mutex
	asked int // rows in claims
	won   int
	ran   []int // tasks, by node
	late  []time.Duration
}

// grow runs a fleet, and tells after every hour how many tasks it has run. The caller is in a bubble. A call takes half
// a millisecond in all, everything else no time. So lateness comes from the division of the work alone.
func grow(nodes, tasks int, length time.Duration, tell func(done time.Duration, ran int)) (growth, error) {
	<-time.After(time.Until(begins))
	f := &fleet{db: memstore.New(), ran: make([]int, nodes), slots: 64}
	if err := f.assemble(); err != nil {
		return growth{}, err
	}
	<-time.After(10 * time.Second)
	before := f.calls()
	<-time.After(20 * time.Second)
	idle := float64(f.calls()-before) / 20 / float64(nodes)

	before = f.calls()
	began := time.Now()
	err := f.save(tasks, length, tell)
	<-time.After(15 * time.Second) // the last are due after four
	took := time.Since(began)
	calls := float64(f.calls()-before) / took.Seconds()
	g := f.sum(tasks)
	g.Nodes, g.Tasks, g.Length, g.Idle, g.Calls, g.PerNode = nodes, tasks, length, idle, calls, calls/float64(nodes)
	for _, e := range f.engines {
		err = cmp.Or(err, e.Stop(context.Background()))
	}
	if ran := f.count(); err == nil && ran != tasks {
		err = fmt.Errorf("%d of %d tasks ran", ran, tasks)
	}
	return g, err
}

// assemble starts the nodes, one soon after the other.
func (f *fleet) assemble() error {
	for i := range f.ran {
		if err := f.join(i); err != nil {
			return err
		}
		<-time.After(7 * time.Millisecond)
	}
	return nil
}

func (f *fleet) join(i int) error {
	registry := &processor.Registry{}
	err := registry.Register("task", processor.Func(func(_ context.Context, task *delaytask.Task) error {
		late := time.Since(task.Expected)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.ran[i]++
		f.late = append(f.late, late)
		return nil
	}))
	if err != nil {
		return err
	}
	way := 250 * time.Microsecond
	if f.server != nil {
		way = 0 // one of its workers would wait meanwhile
	}
	link := faultstore.NewLink(func(faultstore.Call) (there, back time.Duration) { return way, way })
	calls := faultstore.New(f.db).Over(link)
	var reached store.Store = calls
	if f.server != nil {
		reached = &front{calls, f.server}
	}
	w := &world{plan: plan{concurrency: f.slots, ttr: 15 * time.Second}}
	cfg := w.config(&claims{listener{Store: reached, clocks: &w.clocks, host: fmt.Sprint(i)}, f}, registry)
	cfg.Retention = find.Retention{Completed: 10 * time.Second}
	e, err := engine.New(context.Background(), cfg)
	if err != nil {
		return err
	}
	f.engines, f.stores = append(f.engines, e), append(f.stores, calls)
	return e.Start(context.Background())
}

type claims struct {
	listener
	fleet *fleet
}

func (c *claims) Claim(ctx context.Context, claim row.Claim) (row.Claimed, error) {
	won, err := c.listener.Claim(ctx, claim)
	c.fleet.mu.Lock()
	defer c.fleet.mu.Unlock()
	c.fleet.asked += len(claim.Rows)
	c.fleet.won += len(won.Rows)
	return won, err
}

// save saves the tasks in turn at the nodes, each due four seconds later. The node with the share runs it. The time of
// the saves does not slow down the pace.
func (f *fleet) save(tasks int, length time.Duration, tell func(time.Duration, int)) error {
	began, every := time.Now(), length/time.Duration(tasks)
	told := time.Hour
	for i := range tasks {
		task := delaytask.Save{Tag: "task", Body: []byte{}, Delay: 4 * time.Second}
		if _, _, err := f.engines[i%len(f.engines)].Save(context.Background(), task); err != nil {
			return err
		}
		done := every * time.Duration(i+1)
		<-time.After(time.Until(began.Add(done)))
		if done >= told {
			tell(told, f.count())
			told += time.Hour
		}
	}
	return nil
}

func (f *fleet) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.late)
}

func (f *fleet) calls() (n int) {
	for _, s := range f.stores {
		n += s.Calls()
	}
	return n
}

func (f *fleet) sum(tasks int) (g growth) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.stores {
		g.Claims += s.CallsOf("Claim")
	}
	if f.asked > 0 {
		g.Wasted = float64(f.asked-f.won) / float64(f.asked)
	}
	if n := len(f.late); n > 0 {
		slices.Sort(f.late)
		g.Median, g.P99, g.Most = f.late[n/2], f.late[n*99/100], f.late[n-1]
	}
	fair := float64(tasks) / float64(len(f.ran))
	g.Least, g.Largest = float64(slices.Min(f.ran))/fair, float64(slices.Max(f.ran))/fair
	return g
}

// growthHead is the head of the table with a line for each fleet.
const growthHead = "| nodes | for | tasks | claims | wasted rows | calls/s | each | each, idle | late p50 | p99 |" +
	" max | least and largest share |\n|---|---|---|---|---|---|---|---|---|---|---|---|"

func (g growth) String() string {
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Microsecond) }
	return fmt.Sprintf("| %d | %v | %d | %d | %.2f %% | %.0f | %.1f | %.1f | %v | %v | %v | %.2f–%.2f |",
		g.Nodes, g.Length, g.Tasks, g.Claims, 100*g.Wasted, g.Calls, g.PerNode, g.Idle,
		round(g.Median), round(g.P99), round(g.Most), g.Least, g.Largest)
}
