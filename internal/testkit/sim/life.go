package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/cluster/wake"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/testkit/air"
	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/internal/testkit/history"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/processor"
)

// life is one life of a slot: a process from its start to its end.
type life struct {
	world    *world
	slot     int
	number   int
	name     string
	crashAt  int // its last call of the store; 0: none is
	link     *faultstore.Link
	listener *listener
	engine   *engine.Engine

	ending sync.Mutex
	ended  bool
	gone   chan struct{} // closed when it has crashed or begins to stop
}

// supervise starts a process in a slot whenever it has none.
func (w *world) supervise(slot int) {
	for n := 0; ; n++ {
		d := w.draw("life", slot, n)
		w.rest(d.about(time.Second))
		if l := w.start(slot, n, d); l != nil {
			w.live(l, d)
		} else {
			wait(100*time.Millisecond, w.over)
		}
		select {
		case <-w.over:
			return
		default:
		}
	}
}

// live lets a process work until its time has come.
func (w *world) live(l *life, d draw) {
	crash, stop := d.about(w.crash), d.about(w.stop)
	end := time.Hour
	switch {
	case l.crashAt > 0 || w.crash == 0 && w.stop == 0:
	case w.stop == 0 || w.crash > 0 && crash < stop:
		end = crash
	default:
		end = stop
	}
	alarm := time.NewTimer(end)
	defer alarm.Stop()
	select {
	case <-l.gone:
	case <-w.calm:
		select {
		case <-l.gone:
		case <-w.over:
			l.fold()
		}
	case <-alarm.C:
		if end == stop {
			l.stop()
		} else {
			l.crash("a moment")
		}
	}
}

// start begins a life. It returns nil where the process did not come up.
func (w *world) start(slot, n int, d draw) *life {
	l := &life{world: w, slot: slot, number: n, name: fmt.Sprintf("n%d.%d", slot, n), gone: make(chan struct{})}
	if w.crash > 0 && d.chance(.4) {
		l.crashAt = 1 + d.IntN(600)
	}
	l.link = faultstore.NewLink(l.transit)
	l.listener = &listener{
		Store: faultstore.New(w.db, l.fate).Over(l.link), clocks: &w.clocks, host: l.name, server: w.clocks.server(),
	}
	w.enter(l)
	registry := &processor.Registry{}
	served := tags
	if slot%2 == 0 {
		served = append(served[:len(served):len(served)], evenTags...)
	}
	for _, tag := range served {
		if err := registry.Register(tag, processor.Func(l.process)); err != nil {
			panic(err)
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	cfg := w.config(history.New(l.listener, l.name, 1, w.book.Append), registry)
	cfg.Machine = machineOf(w.raw)
	cfg.Waker = w.air.Endpoint(l.wakes())
	e, err := engine.New(ctx, cfg)
	if err == nil {
		err = e.Start(context.Background())
	}
	l.ending.Lock()
	l.engine = e
	ended := l.ended
	l.ending.Unlock()
	if err != nil || ended {
		l.fold()
		l.unwind()
		return nil
	}
	w.note(l.name, journal.NodeStart, journal.Event{Detail: strings.Join(served, " ")})
	for i := range w.clients {
		w.work.Go(func() { (&client{life: l, id: i}).work() })
	}
	w.work.Go(func() { (&popClient{life: l}).work() })
	return l
}

// wakes decides what becomes of the wake-ups that a life sends.
func (l *life) wakes() air.Fate {
	var sent atomic.Int64
	return func(notices []wake.Notice) []time.Duration {
		d := l.world.draw("wake", l.slot, l.number, int(sent.Add(1)))
		arrives := []time.Duration{d.between(0, l.world.latency)}
		switch {
		case d.chance(l.world.lostWakes):
			return nil
		case !d.chance(l.world.badWakes):
		case d.chance(.3):
			arrives = append(arrives, d.between(0, 5*time.Second))
		case d.chance(.5):
			arrives[0] = d.between(0, 5*time.Second)
		default:
			for i := range notices {
				notices[i].From, notices[i].To = row.MinTime, row.MaxTime
				notices[i].Share, notices[i].Of, notices[i].State = d.IntN(9), d.IntN(9), d.chance(.5)
			}
		}
		return arrives
	}
}

func (w *world) config(store store.Store, registry *processor.Registry) engine.Config {
	return engine.Config{
		Store: store, Registry: registry, Logger: slog.New(slog.DiscardHandler),
		CallTimeout: callTimeout, Concurrency: w.concurrency, TTR: w.ttr, Timeout: timeout, MaxAttempts: maxAttempts,
		Backoff: processor.Constant(time.Second), ErrorLimit: 1 << 10, Quarantine: quarantine, LookAhead: time.Second,
		Window: 2 * time.Second, ScanEvery: 5 * time.Second, Horizon: time.Hour, HeapCap: 250_000,
		Heartbeat: time.Second, StopGrace: 2 * time.Second,
	}
}

// enter adds the life to those that take part, leave removes it.
func (w *world) enter(l *life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lives = append(w.lives, l)
}

func (w *world) leave(l *life) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lives = slices.DeleteFunc(w.lives, func(other *life) bool { return other == l })
}

// end begins the end of a life, once.
func (l *life) end() bool {
	l.ending.Lock()
	defer l.ending.Unlock()
	if l.ended {
		return false
	}
	l.ended = true
	return true
}

// crash kills the process: nothing that it does from now on leaves it. The order matters: an event before the crash may
// still have had an effect, no event after it has.
func (l *life) crash(why string) {
	if !l.end() {
		return
	}
	l.link.End()
	l.world.note(l.name, journal.NodeCrash, journal.Event{Detail: why})
	l.depart()
}

// fold ends a process that did not come up, or a process at the end of the run.
func (l *life) fold() {
	if l.end() {
		l.link.End()
		l.depart()
	}
}

// depart ends the goroutines of the process.
func (l *life) depart() {
	l.world.leave(l)
	close(l.gone)
	l.world.work.Go(l.unwind)
}

func (l *life) running() *engine.Engine {
	l.ending.Lock()
	defer l.ending.Unlock()
	return l.engine
}

// unwind ends what is left of an engine whose link has ended.
func (l *life) unwind() {
	e := l.running()
	if e == nil {
		return // its start does this
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = e.Stop(ctx)
}

// stop ends the process gracefully. It may still crash meanwhile.
func (l *life) stop() {
	if l.world.isCalm() {
		<-l.world.over
		l.fold()
		return
	}
	l.world.note(l.name, journal.NodeStop, journal.Event{})
	err := l.engine.Stop(context.Background())
	if !l.end() {
		return
	}
	class := journal.OK
	if err != nil && !errors.Is(err, delaytask.ErrGraceEnded) {
		class = journal.Failed
	}
	l.link.End()
	l.world.note(l.name, journal.NodeStopped, journal.Event{Error: class, Detail: fmt.Sprint(err)})
	l.world.leave(l)
	close(l.gone)
}
