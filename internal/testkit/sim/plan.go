package sim

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/internal/testkit/judge"
)

// plan is what a seed fixes from the beginning. Some seeds have few faults and others many, so that faults happen alone
// and together.
type plan struct {
	rng
	slots  int           // processes of the cluster
	faults time.Duration // length of the first phase
	drain  time.Duration // of the second

	// The mean time between two events, of each slot where it is the slot's; 0: none happen.
	crash, stop, partition, freeze time.Duration
	outage, failover, lock         time.Duration
	// lastCrash is the slot whose process crashes with unstored results long after the faults; -1: none does.
	lastCrash int

	slew       time.Duration // the mean time between two changes of the clocks' rates
	oneMachine bool          // the database's clock is slewed as the processes' are
	slewsDB    bool          // it is slewed by itself

	callFaults float64       // share of calls that fail
	latency    time.Duration // of a call, each way, at most
	slow       float64       // share of calls that take seconds

	lostWakes float64 // share of the wake-ups that do not arrive
	badWakes  float64 // share of those that are doubled, late or forged

	concurrency int
	ttr         time.Duration
	clients     int           // in each process
	externals   int           // clients that survive the crashes of processes
	opEvery     time.Duration // mean time between two operations of a client
	poison      int           // tasks that crash their process
	misbehaving float64       // share of executions that go wrong

	schedules   int
	scheduleOps time.Duration // mean time between two operations on a schedule
}

const (
	maxAttempts = 4
	quarantine  = 5
	timeout     = 3 * time.Second // of an attempt
	callTimeout = 10 * time.Second
	longestTTR  = 6 * time.Second
)

// calmFor is how long after the faults the last crash happens: when every bound counts.
var calmFor = Rules.Settle + Rules.Hold

// Rules are what the judge is told about a simulation.
var Rules = judge.Rules{
	MaxAttempts: maxAttempts, Quarantine: quarantine, TTR: longestTTR,
	Settle: 2 * time.Second, CaughtUp: 6 * time.Second, Rescue: 5 * time.Second, Hold: 5 * time.Second,
	Backoff: 2 * time.Second, Failover: 8 * time.Second,
	Many: arm.ManyNodes, CaughtUpByMany: 10 * time.Second,
}

func newPlan(seed uint64) plan {
	p := plan{rng: rng(seed)}
	d := p.draw("plan")
	often := func(share float64, from, to time.Duration) time.Duration {
		if !d.chance(share) {
			return 0
		}
		return d.between(from, to)
	}
	p.slots = 2 + d.IntN(5)
	p.faults = d.between(10*time.Second, 20*time.Second)
	p.drain = 30 * time.Second

	p.crash = often(.5, 4*time.Second, 20*time.Second)
	p.stop = often(.5, 4*time.Second, 20*time.Second)
	p.partition = often(.4, 4*time.Second, 20*time.Second)
	p.freeze = often(.4, 4*time.Second, 20*time.Second)
	p.outage = often(.3, 5*time.Second, 15*time.Second)
	p.failover = often(.3, 6*time.Second, 15*time.Second)
	p.lock = often(.4, 300*time.Millisecond, 3*time.Second)

	p.callFaults = oneOf(d, 0, 0, .003, .01, .03)
	p.latency = oneOf(d, 200*time.Microsecond, time.Millisecond, 10*time.Millisecond, 60*time.Millisecond)
	p.slow = oneOf(d, 0, 0, .002, .01)

	p.concurrency = oneOf(d, 2, 4, 8, 32)
	p.ttr = d.between(time.Second, longestTTR)
	p.clients = 1 + d.IntN(2)
	p.externals = d.IntN(3)
	p.opEvery = oneOf(d, 300*time.Millisecond, 800*time.Millisecond, 2*time.Second)
	if d.chance(.25) {
		p.poison = 1 + d.IntN(2)
	}
	p.misbehaving = oneOf(d, 0, .1, .3, .6)

	wakes := p.draw("wakes")
	p.lostWakes, p.badWakes = oneOf(wakes, 0, .2, 1), oneOf(wakes, 0, .3)

	scheduled := p.draw("schedules")
	p.schedules = oneOf(scheduled, 0, 0, 0, 1, 1+scheduled.IntN(4), scheduled.IntN(13))
	p.scheduleOps = oneOf(scheduled, time.Hour, 8*time.Second, 3*time.Second)

	slews := p.draw("slews")
	p.slew = oneOf(slews, 0, 0, slews.between(500*time.Millisecond, 5*time.Second))
	p.oneMachine, p.slewsDB = slews.chance(.3), slews.chance(.4)

	last := p.draw("last crash")
	p.lastCrash = oneOf(last, -1, last.IntN(p.slots))
	if seed%crowdEvery == 0 {
		p.crowd()
	}
	return p
}

// crowdEvery is which seeds have a crowd: one takes as long as four others.
const crowdEvery = 50

// crowd makes it a cluster of many nodes. Each of them has so much less to do, and fails so much more seldom, that all
// together have twice as much of either as few.
func (p *plan) crowd() {
	d := p.draw("crowd")
	few := p.slots
	p.slots = Rules.Many + d.IntN(16)
	for _, mean := range []*time.Duration{&p.crash, &p.stop, &p.partition, &p.freeze, &p.opEvery} {
		*mean = *mean * time.Duration(p.slots) / time.Duration(2*few)
	}
	p.lastCrash = oneOf(d, -1, d.IntN(p.slots))
}

// rng draws: the answer depends on the seed, the question and the numbers alone.
type rng uint64

// draw is the generator for one question. One goroutine uses it.
type draw struct{ *rand.Rand }

func (d rng) draw(question string, numbers ...int) draw {
	h := fnv.New64a()
	_, _ = h.Write([]byte(question))
	a, b := uint64(d), h.Sum64()
	for _, n := range numbers {
		a = mix(a ^ mix(b+uint64(n)))
	}
	return draw{rand.New(rand.NewPCG(mix(a), b))}
}

// mix is SplitMix64's finaliser.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (d draw) chance(p float64) bool { return d.Float64() < p }

func (d draw) between(from, to time.Duration) time.Duration {
	return from + time.Duration(d.Int64N(int64(to-from)+1))
}

// about returns a duration whose mean is given, as the time between events that do not know of each other.
func (d draw) about(mean time.Duration) time.Duration {
	return time.Duration(min(d.ExpFloat64(), 5) * float64(mean))
}

func oneOf[T any](d draw, all ...T) T { return all[d.IntN(len(all))] }
