//go:build !race

package decide

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

const day = 24 * time.Hour

// TestTenYearsOfEveryPolicy lets schedules live through outages, runs that take days, and failures. Each tick is
// decided once, in order, and no run starts before it is due. The world itself refuses runs that overlap.
func TestTenYearsOfEveryPolicy(t *testing.T) {
	t.Parallel()
	for i, overlap := range []delaytask.Overlap{
		delaytask.OverlapSkip, delaytask.OverlapQueueOne, delaytask.OverlapReplace, delaytask.OverlapAllow,
	} {
		for j, missed := range []delaytask.Missed{delaytask.MissedOnce, delaytask.MissedSkip, delaytask.MissedAll} {
			t.Run(fmt.Sprintf("%v and %v", overlap, missed), func(t *testing.T) {
				t.Parallel()
				s := row.Schedule{Overlap: overlap, Missed: missed, Jitter: 20 * time.Minute}
				if overlap == delaytask.OverlapAllow {
					s.MaxOpen = 3
				}
				y := &years{random: rand.New(rand.NewPCG(uint64(i), uint64(j)))}
				y.live(t, s)
				if y.ticks < 5000 || y.runs < 300 || y.dropped == 0 && missed != delaytask.MissedAll {
					t.Errorf("%d ticks, %d runs, %d dropped", y.ticks, y.runs, y.dropped)
				}
			})
		}
	}
}

// years is the history of a schedule, as far as it was checked.
type years struct {
	*world
	random               *rand.Rand
	checked              row.Time // the last tick that was
	ticks, runs, dropped int
}

func (y *years) live(t *testing.T, s row.Schedule) {
	y.world = begin(t, s, "30 2,14 * * *")
	sp, to := zoned(t, "Europe/Berlin", "30 2,14 * * *"), y.s
	to.Spec = sp.String()
	y.do(Edit(y.state(), to, sp))
	y.spec = sp
	y.result = func(int) row.Status {
		if y.random.IntN(5) == 0 {
			return row.Failed
		}
		return row.Completed
	}
	for y.now < midnight.Add(3650*day) {
		// While a tick waits the world looks every 5 s, so runs that others wait for are few.
		y.takes = []time.Duration{time.Second, time.Minute}[y.random.IntN(2)]
		if s.Missed != delaytask.MissedAll && y.random.IntN(40) == 0 {
			y.takes = 12*time.Hour + 2*time.Minute
		}
		y.s.TTR = max(y.takes, time.Hour) // as if leases were renewed
		y.until(y.now.Sub(midnight) + time.Duration(y.random.Int64N(int64(8*day))))
		if y.random.IntN(3) == 0 {
			y.sleep(time.Duration(y.random.Int64N(int64(10 * day))))
		}
		y.check()
	}
}

func zoned(t *testing.T, zone, line string) *spec.Spec {
	t.Helper()
	sp, err := spec.Parse(delaytask.Spec{Lines: []string{line}, Zone: zone})
	if err != nil {
		t.Fatal(err)
	}
	return sp
}

// check compares the history with the ticks, and forgets what has ended.
func (y *years) check() {
	p := newPlan(y.state())
	if !y.away && len(p.Open) == 0 && p.due(y.s.Next) < y.now && y.s.Look > y.now {
		y.t.Fatalf("at %v the tick %v is not decided, and nothing is open", y.now, y.s.Next)
	}
	if len(p.Open) > p.most() {
		y.t.Fatalf("%d runs are open", len(p.Open))
	}
	slices.SortFunc(y.history, func(a, b row.ScheduleRun) int { return cmp.Compare(a.Tick, b.Tick) })
	for _, r := range y.history {
		if r.TaskID != 0 && !r.Start.IsZero() && r.Start < p.due(r.Tick) {
			y.t.Fatalf("the run of %v started at %v", r.Tick, r.Start)
		}
		if r.Tick <= y.checked {
			continue
		}
		if want := p.next(cmp.Or(y.checked, r.Tick-1)); r.Tick != want || r.Ticks != p.count(r.Tick, r.Until) {
			y.t.Fatalf("%v follows %v, want %v: %+v", r.Tick, y.checked, want, r)
		}
		y.checked = r.Until
		if y.ticks += r.Ticks; r.TaskID != 0 {
			y.runs++
		} else {
			y.dropped += r.Ticks
		}
	}
	if y.s.Last != y.checked {
		y.t.Fatalf("the cursor is at %v, and the history ends with %v", y.s.Last, y.checked)
	}
	y.history = slices.DeleteFunc(y.history, func(r row.ScheduleRun) bool { return r.Outcome != row.OutcomeOpen })
	for id, r := range y.tasks {
		isOf := func(run row.ScheduleRun) bool { return run.TaskID == id }
		if r.Status.Final() && !slices.ContainsFunc(y.history, isOf) {
			delete(y.tasks, id)
		}
	}
}
