package clock

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/delaytask/delaytask/internal/row"
)

// machine is a simulated database server. Its clock is off by a constant and runs too fast or too slow.
type machine struct {
	offset time.Duration
	ppm    float64
}

// time is exact to the nanosecond; the bubble's clock begins in 2000.
func (m machine) time(start time.Time) time.Duration {
	passed := time.Since(start)
	return m.offset + passed + time.Duration(math.Round(float64(passed)*m.ppm/1e6))
}

// step is one reading after a pause.
type step struct {
	machine               int
	pause, request, reply time.Duration
	falsified             time.Duration
}

// simulate runs the steps in a bubble. It returns an error when the bounds do not hold the true times of all servers
// that answer, or when a reading made the bounds of a single server wider.
func simulate(t *testing.T, machines []machine, steps []step) (err error) {
	epoch := row.At(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	synctest.Test(t, func(*testing.T) {
		start, c := time.Now(), New()
		lastReading := map[int]time.Time{}
		check := func(when string) error {
			least, ok := c.AtLeast()
			if !ok {
				return nil
			}
			most, _ := c.AtMost()
			for i, at := range lastReading {
				if time.Since(at) > forgetAfter {
					continue
				}
				truth := machines[i].time(start)
				if lower := time.Duration(least-epoch) * time.Microsecond; lower > truth {
					return fmt.Errorf("%s: AtLeast is %v past the time of server %d", when, lower-truth, i)
				}
				if upper := time.Duration(most-epoch) * time.Microsecond; upper < truth {
					return fmt.Errorf("%s: AtMost is %v short of the time of server %d", when, truth-upper, i)
				}
			}
			return nil
		}
		for n, s := range steps {
			time.Sleep(s.pause)
			if err = check(fmt.Sprintf("before reading %d", n)); err != nil {
				return
			}
			sent := time.Now()
			time.Sleep(s.request)
			truth := machines[s.machine].time(start) + s.falsified
			reading := row.Reading{Server: fmt.Sprint(s.machine), Time: epoch +
				row.Time(math.Floor(float64(truth)/1e3))}
			time.Sleep(s.reply)
			before, known := c.Width()
			anchored := c.Add(reading, sent, time.Now())
			if after, _ := c.Width(); anchored && known && len(machines) == 1 && after > before {
				err = fmt.Errorf("reading %d widened the bounds from %v to %v", n, before, after)
				return
			}
			if !anchored {
				clear(lastReading)
			} else {
				lastReading[s.machine] = time.Now()
			}
			if err = check(fmt.Sprintf("after reading %d", n)); err != nil {
				return
			}
		}
	})
	return err
}

func drawDuration(t *rapid.T, limit time.Duration, label string) time.Duration {
	return time.Duration(rapid.Int64Range(0, int64(limit)).Draw(t, label))
}

func drawMachines(t *rapid.T) []machine {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) machine {
		return machine{
			offset: time.Duration(rapid.Int64Range(int64(-400*time.Millisecond), int64(400*time.Millisecond)).Draw(t,
				"offset")),
			ppm: rapid.Float64Range(-200, 200).Draw(t, "ppm"),
		}
	}), 1, 3).Draw(t, "machines")
}

func drawSteps(t *rapid.T, machines int) []step {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		pause := rapid.SampledFrom([]time.Duration{time.Millisecond, 10 * time.Second, 10 * time.Minute}).Draw(t,
			"longest pause")
		travel := rapid.SampledFrom([]time.Duration{0, time.Millisecond, 2 * time.Second}).Draw(t, "longest travel")
		return step{
			machine: rapid.IntRange(0, machines-1).Draw(t, "machine"),
			pause:   drawDuration(t, pause, "pause"),
			request: drawDuration(t, travel, "request"),
			reply:   drawDuration(t, travel, "reply"),
		}
	}), 1, 20).Draw(t, "steps")
}

func TestBoundsAlwaysHoldTheTruth(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		machines := drawMachines(rt)
		if err := simulate(t, machines, drawSteps(rt, len(machines))); err != nil {
			rt.Fatal(err)
		}
	})
}

// The check must be able to fail: it sees an anchor that is wrong by 5 ms, whatever the drift, if the reply is fast.
func TestAFalsifiedAnchorIsSeen(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		machines := drawMachines(rt)
		first := step{falsified: 5 * time.Millisecond, reply: drawDuration(rt, 4*time.Millisecond, "reply")}
		if rapid.Bool().Draw(rt, "behind") {
			first = step{falsified: -5 * time.Millisecond, request: drawDuration(rt, 4*time.Millisecond, "request")}
		}
		if err := simulate(t, machines, []step{first}); err == nil {
			rt.Fatal("the bounds of a falsified reading were taken for true")
		}
	})
}
