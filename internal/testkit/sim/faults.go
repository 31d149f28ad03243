package sim

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// often makes something happen again and again while the faults last; every 0 is never.
func (w *world) often(what string, slot int, every time.Duration, happen func(draw, int)) {
	for n := 0; every > 0; n++ {
		d := w.draw(what, slot, n)
		if !w.rest(d.about(every)) {
			return
		}
		happen(d, n)
	}
}

// fault writes down a fault that lasts, until the end that it returns.
func (w *world) fault(kind, target string, n int) (end func()) {
	op := fmt.Sprintf("%s %s %d", kind, target, n)
	w.note("faults", journal.FaultBegin, journal.Event{Op: op, Detail: kind})
	return func() { w.note("faults", journal.FaultEnd, journal.Event{Op: op, Detail: kind}) }
}

func (w *world) partition(d draw, slot, n int) {
	l := w.in(slot)
	if l == nil {
		return
	}
	end := w.fault("partition", l.name, n)
	l.link.Cut()
	w.rest(d.about(2 * time.Second))
	l.link.Restore()
	end()
}

// freeze lets a node stand still, as far as the database can see.
func (w *world) freeze(d draw, slot, n int) {
	l := w.in(slot)
	if l == nil {
		return
	}
	end := w.fault("freeze", l.name, n)
	w.note(l.name, journal.NodeFrozen, journal.Event{})
	l.link.Hold()
	w.rest(d.about(2 * time.Second))
	l.link.Restore()
	w.note(l.name, journal.NodeThawed, journal.Event{})
	end()
}

// outage makes the database refuse everything for a while.
func (w *world) outage(d draw, n int) {
	end := w.fault("outage", "db", n)
	w.away.Store(true)
	w.rest(d.about(1500 * time.Millisecond))
	w.away.Store(false)
	end()
}

// failover switches to a server with another clock, but not late: the hold that follows must end before the drain.
func (w *world) failover(d draw, n int) {
	if time.Since(begins) > w.faults-8*time.Second {
		return
	}
	offset := oneOf(d, d.between(-4*time.Second, 4*time.Second), d.between(-300*time.Millisecond, 300*time.Millisecond))
	step := (offset - w.clocks.now()).Abs()
	w.clocks.step(offset)
	w.db.SetOffset(offset)
	// A step of one server's clock that is shorter than a call does not show.
	if d.chance(.6) || step < 500*time.Millisecond {
		w.db.SetServer(fmt.Sprintf("server %d", n))
	}
	op := fmt.Sprintf("failover %d: %v", n, offset)
	w.note("faults", journal.FaultBegin, journal.Event{Op: op, Detail: "failover"})
}

// lock locks a few rows as another transaction does.
func (w *world) lock(d draw, n int) {
	var ids []int64
	for range 1 + d.IntN(4) {
		if id := w.someTask(d); id != 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	end, unlock := w.fault("lock", "rows", n), w.db.Lock(ids...)
	w.rest(d.about(800 * time.Millisecond))
	unlock()
	end()
}

// fate decides the fault of a call of the store.
func (l *life) fate(c faultstore.Call) faultstore.Mode {
	w := l.world
	if w.isCalm() {
		late := time.Since(begins) > w.faults+calmFor
		if l.slot == w.lastCrash && c.Method == "Update" && late && w.crashed.CompareAndSwap(false, true) {
			l.crash("before its results were stored")
		}
		return faultstore.Pass
	}
	if w.away.Load() {
		return faultstore.Before
	}
	if c.N == l.crashAt && !l.crashesOnTheWay() {
		l.crash("before a call of " + c.Method)
	}
	d := l.call("fault", c)
	if w.callFaults == 0 || !d.chance(w.callFaults) {
		return faultstore.Pass
	}
	mode := oneOf(d, faultstore.Modes...)
	w.note("faults", journal.FaultBegin, journal.Event{
		Op: fmt.Sprintf("%s %s %d %v", l.name, c.Method, c.OfKind, mode), Detail: "call " + mode.String(),
	})
	return mode
}

// transit is how long a call is under way, and its answer.
func (l *life) transit(c faultstore.Call) (there, back time.Duration) {
	w := l.world
	if w.isCalm() {
		return 200 * time.Microsecond, 200 * time.Microsecond
	}
	d := l.call("travel", c)
	there, back = d.between(0, w.latency), d.between(0, w.latency)
	if w.slow > 0 && d.chance(w.slow) {
		there += d.about(700 * time.Millisecond)
	}
	if c.N == l.crashAt && l.crashesOnTheWay() {
		time.AfterFunc(time.Millisecond, func() { l.crash("while a call of " + c.Method + " was under way") })
		there += 2 * time.Millisecond
	}
	return there, back
}

// crashesOnTheWay tells a crash before its last call from one after that was sent.
func (l *life) crashesOnTheWay() bool { return l.crashAt%2 == 0 }

// call decides about one call by its kind and number.
func (l *life) call(question string, c faultstore.Call) draw {
	return l.world.draw(question+c.Method, l.slot, l.number, c.OfKind)
}
