package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
	"github.com/delaytask/delaytask/internal/schedules/spec"
	"github.com/delaytask/delaytask/internal/store"
)

const (
	// perTransaction bounds the schedules of one transaction.
	perTransaction = 100
	// mostOpen bounds the open runs that are read at once. No schedule may have more.
	mostOpen = 10_000
)

// ErrUnreadable is returned for a schedule that this program leaves to other nodes: its zone is not in the zone data of
// this machine, or its grammar is newer than this program.
var ErrUnreadable = errors.New("this process cannot decide about the schedule, and leaves it to others")

// decide decides what is due of the schedules, and stores it. When the search for ticks has taken the time that it
// may take in a second, the others are put off until the next one, the expensive ones behind the cheap.
func (p *Planner) decide(ctx context.Context, due []row.Schedule) {
	slices.SortStableFunc(due, func(a, b row.Schedule) int { return cmp.Compare(p.took[a.ID], p.took[b.ID]) })
	for some := range slices.Chunk(due, perTransaction) {
		states, err := p.states(ctx, some)
		if err != nil {
			p.Failed("reading the open runs of schedules", err)
			continue // their look has come, so the next read finds them again
		}
		decisions := make([]row.Decision, 0, len(states))
		for i := range states {
			s := &states[i].Schedule
			if p.exhausted() {
				p.putOff(*s, states[i].Now)
				continue
			}
			began := time.Now()
			decisions = append(decisions, decide.Decide(states[i]))
			p.note(s.ID, time.Since(began))
		}
		p.store(ctx, decisions)
	}
}

// expensive is from which time on a decision counts as expensive.
const expensive = time.Millisecond

// exhausted reports whether the budget of this second is used up.
func (p *Planner) exhausted() bool {
	if time.Since(p.since) >= time.Second {
		p.since, p.spent = time.Now(), 0
	}
	return p.Budget > 0 && p.spent >= p.Budget
}

// note counts the time that a decision about a schedule has taken.
func (p *Planner) note(id int64, took time.Duration) {
	p.spent += took
	if took < expensive {
		delete(p.took, id)
	} else {
		p.took[id] = took
	}
}

// putOff keeps a schedule for the next pass.
func (p *Planner) putOff(s row.Schedule, now row.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held[s.ID] = held{s, now.Add(readEvery)}
}

// states reads what decisions are made of. Schedules that this program cannot read are left out.
func (p *Planner) states(ctx context.Context, of []row.Schedule) ([]decide.State, error) {
	ctx, cancel := p.CallIn(ctx)
	defer cancel()
	runs, err := p.openRuns(ctx, row.IDsOf(of, func(s row.Schedule) int64 { return s.ID }))
	if err != nil {
		return nil, err
	}
	tasks, err := p.tasks(ctx, runs)
	if err != nil {
		return nil, err
	}
	open := map[int64][]decide.Open{}
	for _, run := range runs {
		r, there := tasks[run.TaskID]
		open[run.ScheduleID] = append(open[run.ScheduleID], decide.Open{Run: run, Task: r, Gone: !there})
	}
	now, err := p.certain(ctx) // a failover may have taken the clock away since
	if err != nil {
		return nil, err
	}
	states := make([]decide.State, 0, len(of))
	for _, s := range of {
		sp, err := p.spec(&s)
		if err != nil {
			p.Log.Error("a schedule is left to other nodes", "schedule", s.Name, "err", err)
			continue
		}
		st := p.state(s, sp, now, open[s.ID])
		st.Actor = row.Actor(ctx)
		if st.History, err = p.Skipped(ctx, &s); err != nil {
			return nil, err
		}
		states = append(states, st)
	}
	return states, nil
}

// Skipped reads the rows of the history that tell which ticks of a schedule were skipped ahead of its cursor.
func (p *Planner) Skipped(ctx context.Context, s *row.Schedule) ([]row.ScheduleRun, error) {
	if !decide.Ahead(s) {
		return nil, nil
	}
	ctx, cancel := p.CallIn(ctx)
	defer cancel()
	return p.Store.Runs(ctx, s.ID, 0, decide.MostAhead)
}

// openRuns reads the open runs of schedules, by halves when they are more than one read returns. Of one schedule it
// returns as many as may be open.
func (p *Planner) openRuns(ctx context.Context, of []int64) ([]row.ScheduleRun, error) {
	if len(of) == 0 {
		return nil, nil
	}
	runs, err := p.Store.OpenRuns(ctx, of, mostOpen)
	if err != nil || len(runs) < mostOpen || len(of) == 1 {
		return runs, err
	}
	half := len(of) / 2
	if runs, err = p.openRuns(ctx, of[:half]); err != nil {
		return nil, err
	}
	rest, err := p.openRuns(ctx, of[half:])
	return append(runs, rest...), err
}

func (p *Planner) state(s row.Schedule, sp *spec.Spec, now row.Time, open []decide.Open) decide.State {
	return decide.State{
		Schedule: s, Spec: sp, Open: open, Now: now, Ahead: p.Ahead, ZoneData: p.ZoneData, NextID: p.NextID,
	}
}

func (p *Planner) spec(s *row.Schedule) (*spec.Spec, error) {
	if s.Grammar > spec.Grammar {
		return nil, fmt.Errorf("%w: its grammar has version %d, and this program reads %d", ErrUnreadable, s.Grammar,
			spec.Grammar)
	}
	sp, err := p.specs.of(s.Spec)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return sp, nil
}

// tasks returns the tasks of runs by id. One that cannot be decoded is not gone: it counts as open until an operator
// mends it.
func (p *Planner) tasks(ctx context.Context, runs []row.ScheduleRun) (map[int64]row.Row, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	rows, broken, err := p.Store.Get(ctx, nil, row.IDsOf(runs, func(r row.ScheduleRun) int64 { return r.TaskID }))
	if err != nil {
		return nil, err
	}
	tasks := make(map[int64]row.Row, len(rows))
	for _, b := range broken {
		tasks[b.ID] = row.Row{ID: b.ID, Status: row.Executing}
	}
	for _, r := range rows {
		tasks[r.ID] = r
	}
	return tasks, nil
}

// store stores decisions together, and by halves when the database refuses one of them. It returns the ones that are
// stored. A tag travels apart of which another transaction may have locked a range. A decision that another node has
// been quicker with is dropped: a schedule that still needs attention is found again.
func (p *Planner) store(ctx context.Context, decisions []row.Decision) (stored []row.Decision) {
	apart, decisions := table.SplitApart(p.Table, decisions, tagOf)
	for tag, of := range apart {
		if n, _ := p.apart.Begin(tag, len(of)); n > 0 { // the others are found again
			p.Go(func() {
				defer p.apart.End(tag)
				p.storeApart(tag, of[:n])
			})
		}
	}
	return p.storeAll(ctx, decisions)
}

func tagOf(d row.Decision) string { return d.Schedule.Tag }

// storeApart stores decisions of a tag on connections of their own.
func (p *Planner) storeApart(tag string, decisions []row.Decision) {
	call, cancel := p.Call()
	defer cancel()
	call = store.Apart(call)
	sent := time.Now()
	applied, err := p.Store.Decide(call, decisions)
	if table.IsLocked(err) {
		p.TellRange(tag, sent)
		p.apart.Locked(tag, len(decisions))
		return
	}
	p.apart.Passed(tag)
	switch {
	case err == nil && applied:
		p.stored(decisions)
		p.trim(call, decisions)
	default: // one of them is why
		p.storeAll(call, decisions)
	}
}

func (p *Planner) storeAll(ctx context.Context, decisions []row.Decision) (stored []row.Decision) {
	if len(decisions) == 0 {
		return nil
	}
	call, cancel := p.CallIn(ctx)
	applied, err := p.Store.Decide(call, decisions)
	cancel()
	if err == nil && applied {
		p.stored(decisions)
		p.trim(ctx, decisions)
		return decisions
	}
	if table.IsLocked(err) {
		p.Locks.Note()
		table.MayWait(p.Table, decisions, tagOf)
		return p.store(ctx, decisions)
	}
	ofOne := row.IsOneOf(err, row.ClassDuplicate, row.ClassCaller)
	if len(decisions) > 1 && (err == nil || ofOne) {
		half := len(decisions) / 2
		return append(p.storeAll(ctx, decisions[:half]), p.storeAll(ctx, decisions[half:])...)
	}
	switch {
	case err == nil:
	case row.ClassOf(err) == row.ClassDuplicate:
		p.meet(ctx, decisions[0].Schedule.Name)
	default:
		p.Failed("deciding about schedules", err)
	}
	return nil
}

// stored is what follows stored decisions.
func (p *Planner) stored(decisions []row.Decision) {
	var runs []row.Due
	for i := range decisions {
		d := &decisions[i]
		p.count(d)
		for j := range d.Insert {
			runs = append(runs, d.Insert[j].Sighting())
		}
		if d.Write == row.WriteProgress {
			s := d.Schedule
			s.Version++
			p.hold(s)
		}
	}
	p.Committed(runs...)
}

// trimOnceIn is after how many new rows the history of a schedule is trimmed, on average.
const trimOnceIn = 20

// trim deletes what the histories of some of the schedules hold beyond what they keep. The ticks decide which, so that
// no process has to remember how many rows there are. Rows of ticks that are not past both the cursor and the clock
// stay: they may be of ticks that were skipped ahead.
func (p *Planner) trim(ctx context.Context, decisions []row.Decision) {
	now, _ := p.Now()
	for i := range decisions {
		s := &decisions[i].Schedule
		past := now.Add(-s.Jitter)
		if !s.Next.IsZero() {
			past = min(past, s.Next)
		}
		if s.Parent != "" {
			continue // a backfill keeps all, and finding out that nothing is beyond takes longer with each run
		}
		for _, run := range decisions[i].New {
			if ids.OneOf(s.ID+int64(run.Tick), trimOnceIn) != 0 {
				continue
			}
			call, cancel := p.CallIn(ctx)
			if _, err := p.Store.TrimRuns(call, s.ID, past, s.KeepRuns, page); err != nil {
				p.Failed("trimming the history of a schedule", err)
			}
			cancel()
		}
	}
}

// meet decides about a schedule whose key an unfinished task has that is no open run of it: an operator has retried an
// old run, which then is the open one.
func (p *Planner) meet(ctx context.Context, name string) {
	call, cancel := p.CallIn(ctx)
	defer cancel()
	d, err := p.again(call, name)
	if err == nil && d != nil {
		var applied bool
		if applied, err = p.Store.Decide(call, []row.Decision{*d}); err == nil && applied {
			p.stored([]row.Decision{*d})
		}
	}
	if err != nil {
		p.Failed("deciding about a schedule whose old run was retried", err)
	}
}

func (p *Planner) again(ctx context.Context, name string) (*row.Decision, error) {
	found, _, err := p.Store.Schedules(ctx, row.ScheduleFilter{Names: []string{name}, Limit: 1})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	states, err := p.states(ctx, found)
	if err != nil || len(states) == 0 {
		return nil, err
	}
	if err := p.addForeign(ctx, states, found[0].Tag); err != nil {
		return nil, err
	}
	d := decide.Decide(states[0])
	return &d, nil
}

// addForeign adds the tasks that have the keys of schedules, in the tag of each or in another one, and are no open runs
// of them: old runs that an operator has retried, and runs of deleted schedules.
func (p *Planner) addForeign(ctx context.Context, states []decide.State, tag string) error {
	ctx, cancel := p.CallIn(ctx)
	defer cancel()
	keys := make([]row.TagKey, len(states))
	at := map[string]*decide.State{}
	for i := range states {
		s := &states[i].Schedule
		keys[i] = row.TagKey{Tag: cmp.Or(tag, s.Tag), Key: decide.Key(s.Name)}
		at[keys[i].Key] = &states[i]
	}
	holders, err := p.Store.FindActive(ctx, nil, keys)
	for _, r := range holders {
		st := at[r.Key]
		if !slices.ContainsFunc(st.Open, func(o decide.Open) bool { return o.Task.ID == r.ID }) {
			st.Open = append(st.Open, decide.Open{Task: r, Foreign: true})
		}
	}
	return err
}
