// Package plan brings schedules and the table together: it reads the schedules that need attention, has package decide
// decide, and stores the decisions. Every started node plans. The version of a schedule lets one of them win.
//
//   - planner.go: the loop, and which schedule is looked at when.
//   - decide.go: from due schedules to stored decisions, many in a transaction.
//   - change.go: what operators and programs change of one schedule.
//   - save.go: new schedules, new definitions, backfills, and what is listed.
//   - declare.go: schedules that programs declare.
//   - measure.go: how the schedules stand, for the metrics.
//   - manual.go: the same for a caller that tells the time, in tests of users.
//   - confirm.go: what a node asks and tells of a run: may it begin late, has the run that it replaces returned.
package plan

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// Config is what a [Planner] works with. Every field is set but Budget.
type Config struct {
	Now       func() (now row.Time, anchored bool) // a lower bound of the database's clock
	NextID    func() int64
	Mine      func(schedule int64) bool // reports whether a schedule is of this node's share
	Committed func(rows ...row.Due)     // called with the runs that were stored
	Ahead     time.Duration             // how long before they are due ticks are planted
	Nodes     func() (live []row.Node, now row.Time, known bool)
	Budget    time.Duration // how long the loop may search for ticks in a second; 0: no bound
	ZoneData  string        // version of the zone data of this machine; "" when it is not known
}

const (
	// readEvery is the period of the reads of schedules that need attention. Nothing is read while none needs it.
	readEvery = time.Second
	// othersAfter is how long the schedules of another node are left to it.
	othersAfter = time.Second
	page        = 200
	// settleIn is how long the ends of runs are collected, so that those that end together share statements.
	settleIn = 20 * time.Millisecond
)

// Planner plans the runs of schedules. It is safe for concurrent use.
type Planner struct {
	*table.Table
	Config
	specs specs
	apart *table.Turns // of tags of which another transaction may have locked a range

	wake chan struct{}

	mu    sync.Mutex
	look  row.Time            // when the first schedule needs attention, as it was read last; zero: none does
	told  bool                // look was read
	ended map[string]struct{} // schedules whose runs have ended here
	held  map[int64]held      // schedules that need attention soon, by id
	read  row.Time            // when these were read

	// Of the loop alone: what the search for ticks has taken since a moment, and in the last decision about each
	// expensive schedule.
	spent time.Duration
	since time.Time
	took  map[int64]time.Duration
}

// held is a schedule that was read before it needs attention, so that its turn costs no read.
type held struct {
	schedule row.Schedule
	at       row.Time
}

// New returns a planner that does nothing before [Planner.Loop].
func New(t *table.Table, c Config) *Planner {
	return &Planner{
		Table: t, Config: c, apart: table.NewTurns(perTransaction), wake: make(chan struct{}, 1),
		ended: map[string]struct{}{}, held: map[int64]held{}, took: map[int64]time.Duration{},
	}
}

// Look tells when the first schedule needs attention, by a read of the table that was made for another reason.
func (p *Planner) Look(at row.Time) {
	p.mu.Lock()
	p.look, p.told = at, true
	p.mu.Unlock()
	p.nudge()
}

// Behind reports whether a schedule needs attention, or may.
func (p *Planner) Behind() bool {
	now, anchored := p.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	return !anchored || !p.told || !p.look.IsZero() && p.look <= now
}

// Ended tells that a run of the schedule has ended. The schedule is looked at at once.
func (p *Planner) Ended(name string) {
	p.mu.Lock()
	p.ended[name] = struct{}{}
	p.mu.Unlock()
	p.nudge()
}

func (p *Planner) nudge() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Loop plans until the context ends.
func (p *Planner) Loop(ctx context.Context) {
	for {
		wait := p.turn(ctx)
		alarm := time.NewTimer(wait)
		select {
		case <-alarm.C:
		case <-p.wake:
			alarm.Stop()
			if !lifecycle.Sleep(ctx, settleIn) {
				return
			}
		case <-ctx.Done():
			alarm.Stop()
			return
		}
	}
}

// turn does what is due, and returns how long the loop may sleep.
func (p *Planner) turn(ctx context.Context) time.Duration {
	now, anchored := p.Now()
	if !anchored {
		return readEvery / 10
	}
	p.collectEnded(ctx)
	p.readSoon(ctx, now)
	if due := p.takeDue(now); len(due) > 0 {
		p.decide(ctx, due)
	}
	return p.rest()
}

// collectEnded looks at the schedules whose runs have ended here.
func (p *Planner) collectEnded(ctx context.Context) {
	p.mu.Lock()
	names := slices.Sorted(maps.Keys(p.ended))
	clear(p.ended)
	p.mu.Unlock()
	for some := range slices.Chunk(names, page) {
		call, cancel := p.CallIn(ctx)
		found, broken, err := p.Store.Schedules(call, row.ScheduleFilter{Names: some, Limit: len(some)})
		cancel()
		if err != nil {
			p.Failed("reading the schedules of runs that have ended", err)
			continue // the next look collects them
		}
		p.unreadable(broken)
		p.decide(ctx, found)
	}
}

// readSoon reads the schedules that need attention until the next read.
func (p *Planner) readSoon(ctx context.Context, now row.Time) {
	p.mu.Lock()
	look, read := p.look, p.read
	p.mu.Unlock()
	until := now.Add(readEvery)
	if look.IsZero() || look > until || now < read.Add(readEvery) && now >= read {
		return
	}
	soon := map[int64]held{}
	var from row.Time
	var after int64
	for {
		call, cancel := p.CallIn(ctx)
		found, broken, err := p.Store.LookAt(call, until, from, after, page)
		cancel()
		if err != nil {
			p.Failed("reading the schedules that need attention", err)
			break
		}
		p.unreadable(broken)
		for _, s := range found {
			at := s.Look
			if !p.Mine(s.ID) {
				at = at.Add(othersAfter)
			}
			soon[s.ID] = held{s, at}
		}
		if len(found)+len(broken) < page {
			break
		}
		from, after = last(found, broken)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.read = soon, now
}

// last returns where the next page of a read goes on.
func last(found []row.Schedule, broken []row.Broken) (look row.Time, id int64) {
	if n := len(found); n > 0 {
		look, id = found[n-1].Look, found[n-1].ID
	}
	if n := len(broken); n > 0 {
		if b := &broken[n-1]; b.Read.Due > look || b.Read.Due == look && b.ID > id {
			look, id = b.Read.Due, b.ID
		}
	}
	return look, id
}

// takeDue takes the schedules out of those that are held whose moment has come.
func (p *Planner) takeDue(now row.Time) (due []row.Schedule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id, h := range p.held {
		if h.at <= now {
			due = append(due, h.schedule)
			delete(p.held, id)
		}
	}
	slices.SortFunc(due, func(a, b row.Schedule) int { return int(a.Look - b.Look) })
	return due
}

// hold keeps a schedule that needs attention before the next read.
func (p *Planner) hold(s row.Schedule) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !s.Look.IsZero() && s.Look <= p.read.Add(2*readEvery) {
		p.held[s.ID] = held{s, s.Look}
	}
	if p.look.IsZero() || !s.Look.IsZero() && s.Look < p.look {
		p.look = s.Look
	}
}

// rest returns how long nothing needs attention, as far as is known.
func (p *Planner) rest() time.Duration {
	now, _ := p.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	wait := readEvery
	if !p.look.IsZero() {
		wait = min(wait, max(p.read.Add(readEvery).Sub(now), p.look.Add(-readEvery).Sub(now)))
	}
	for _, h := range p.held {
		wait = min(wait, h.at.Sub(now))
	}
	return max(wait, 0)
}

// unreadable reports rows that were written by hand, and are left alone.
func (p *Planner) unreadable(broken []row.Broken) {
	for _, b := range broken {
		p.Log.Error("a schedule cannot be read", "schedule", b.ID, "err", b.Reason)
	}
}

// specs keeps what was parsed. Many schedules share a spec, and each is asked many times.
type specs struct {
	mu    sync.Mutex
	known map[string]*spec.Spec
}

const mostSpecs = 20_000

func (s *specs) of(text string) (*spec.Spec, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sp, ok := s.known[text]; ok {
		return sp, nil
	}
	sp, err := spec.ParseText(text)
	if err != nil {
		return nil, err
	}
	if len(s.known) >= mostSpecs || s.known == nil {
		s.known = map[string]*spec.Spec{}
	}
	s.known[text] = sp
	return sp, nil
}
