package find

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/internal/engine/events"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/scanner"
)

// The names of the scanner's passes.
const (
	passScan    = "scan"
	passOrphans = "orphans"
	passRescue  = "rescue"
	passPurge   = "purge"
	passNumbers = "numbers"
	passRest    = "rest"
)

// passes is what the scanner does every few seconds. It finds what memory has lost.
type passes struct {
	*deps
	stores  map[string]table.Bounded // by pass
	leased  *leaseTags
	runner  *scanner.Runner
	backlog *scanner.Compensate
	rescue  *scanner.Rescue
}

const (
	scanPage    = 500
	rescuePage  = 200
	purgeBatch  = 500
	purgeRounds = 40 // statements in one pass
	rescueEvery = 2 * time.Second
	restEvery   = time.Minute
	scanPause   = 500 * time.Millisecond
	// offerPause is how often a full backlog queue is looked at. A quick tag runs a hundred rows within it, so half of
	// the queue is left when there is room for a page.
	offerPause = 4 * time.Millisecond
)

func newPasses(c *deps) *passes {
	p := &passes{deps: c, stores: map[string]table.Bounded{}}
	for _, pass := range []string{passScan, passOrphans, passRescue} {
		again := func() { p.runner.Kick(pass) } // its next turn would break the bounds of docs/promises.md
		p.stores[pass] = table.Bound(c.Store, table.LockWait, c.cfg.CallTimeout, again)
	}
	for _, pass := range []string{passPurge, passNumbers, passRest} {
		p.stores[pass] = table.Bound(c.Store, c.cfg.CallTimeout, c.cfg.CallTimeout, func() {})
	}
	p.leased = &leaseTags{store: p.stores[passRescue], arm: c.arm, atOnce: c.cfg.AtOnce}
	p.backlog = &scanner.Compensate{
		Due: p.stores[passScan].Due, Adopt: p.adopt, Tags: c.arm.Tags.List, Turn: c.arm.TurnOfAny,
		Share: c.arm.Share, Turns: cluster.Turns, Crowd: c.arm.Census.Crowd, Now: c.Bounds.AtLeast,
		Waiting: p.waiting, Offer: p.Offer, Page: scanPage, Log: c.Log,
	}
	p.rescue = &scanner.Rescue{
		Leases: expiredLeases{p.stores[passRescue], c.Events, p.leased}, Now: c.Bounds.AtLeast,
		Held: p.rescueHeld, Rescued: p.rescued,
		Update: func(ctx context.Context, changes []row.Change) (int, error) {
			if p.Locks.Lately() {
				ctx = store.Apart(ctx)
			}
			n, err := p.stores[passRescue].Update(ctx, nil, changes)
			p.Locks.NoteIn(err)
			return n, err
		},
		Quarantine: c.cfg.Quarantine, Page: rescuePage, Log: c.Log,
	}
	purge := &scanner.Purge{
		Tags: p.purgeable, Delete: p.purge, Keep: c.cfg.Retention.ByStatus(), Now: c.Bounds.AtLeast,
		Busy: c.arm.Ahead.Saturated, Batch: purgeBatch, Limit: purgeRounds,
	}
	p.runner = scanner.NewRunner(c.Log,
		scanner.Pass{Name: passScan, Every: c.cfg.ScanEvery, Run: p.scan},
		spared(scanner.Pass{Name: passOrphans, Every: c.cfg.ScanEvery, Run: p.ReleaseOrphans}, c.arm.Census.Alive),
		p.shared(passNumbers, c.cfg.ScanEvery, p.renumber),
		p.shared(passRescue, rescueEvery, p.rescue.Pass),
		p.shared(passPurge, c.cfg.ScanEvery, p.afterPlanning(purge.Pass)),
		p.shared(passRest, restEvery, p.purgeRest),
	)
	return p
}

func (p *passes) scan(ctx context.Context) error {
	if !p.arm.Joining.Wait(ctx) {
		return ctx.Err()
	}
	return p.backlog.Pass(ctx)
}

// takers is how many nodes take the same turn of a shared pass: one may hang, another one may have no answer.
const takers = 3

// shared is a pass over the rows of all nodes. Many nodes take turns by the database's time, so that it costs no more
// than of a few. A node that is not known among them takes each turn.
func (p *passes) shared(name string, every time.Duration, run func(context.Context) error) scanner.Pass {
	return scanner.Pass{Name: name, Every: every, Run: run, Takes: func() bool {
		rank, nodes, known := p.arm.Census.Rank()
		now, anchored := p.Bounds.AtLeast()
		if !known || !anchored || nodes <= takers {
			return true
		}
		turn := now.Std().UnixNano() / int64(every)
		return (turn+int64(rank))%int64(nodes) < takers
	}}
}

// mostSpared is how long a pass may be left out: longer than most leases last that no node renews.
const mostSpared = time.Minute

// spared is a pass that reads past the rows of all nodes. Many nodes leave out turns, so that it takes a part of their
// time. Otherwise each of them would read what all are running, and the more that is, the slower they would run it.
func spared(pass scanner.Pass, alive func() time.Duration) scanner.Pass {
	began, run := time.Now(), pass.Run
	var next atomic.Int64 // from began on
	pass.Takes = func() bool { return alive() < arm.ManyNodes || int64(time.Since(began)) >= next.Load() }
	pass.Run = func(ctx context.Context) error {
		from := time.Now()
		err := run(ctx)
		rest := min(mostSpared, partOfAll*time.Since(from)*alive())
		next.Store(int64(time.Since(began) + rest))
		return err
	}
	return pass
}

// afterPlanning leaves out the turns of a purge, for a minute at most, while a schedule needs attention. A process that
// was killed has not seen the ends of its last runs, and what they became goes with their tasks.
func (p *passes) afterPlanning(purge func(context.Context) error) func(context.Context) error {
	var first time.Time
	return func(ctx context.Context) error {
		if first.IsZero() {
			first = time.Now()
		}
		if p.Unplanned() && time.Since(first) < time.Minute {
			return nil
		}
		return purge(ctx)
	}
}

// expiredLeases is what a rescue sees of the store.
type expiredLeases struct {
	table.Bounded
	events *events.Events
	leased *leaseTags
}

// Expired implements [scanner.Leases].
func (l expiredLeases) Expired(ctx context.Context, limit int) ([]row.Row, []row.Broken, error) {
	tags, err := l.leased.read(ctx)
	if err != nil {
		return nil, nil, err
	}
	tags = row.Distinct(append(tags, l.leased.arm.Census.ServedTags()...)) // others leave this turn out
	rows, broken, err := l.Bounded.Expired(ctx, tags, limit)
	if failed := store.NameProcesses(ctx, l.Bounded, rows); failed != nil {
		l.events.Failed("reading whose leases have ended", failed)
	}
	return rows, broken, err
}

// Discard implements [scanner.Leases].
func (l expiredLeases) Discard(ctx context.Context, broken []row.Broken) error {
	return l.events.DiscardBy(ctx, l.Bounded, broken)
}

// loop scans at once when a tag has opened, and when the run queue has dropped rows. The queue drops rows of an
// overloaded tag all the time, so there is a pause after each such scan.
func (p *passes) loop(ctx context.Context) {
	dropped, pause := p.runqueue.ScanWake, (<-chan time.Time)(nil)
	for {
		select {
		case <-p.arm.Tags.News:
			p.runner.Kick(passScan)
		case <-dropped:
			p.runner.Kick(passScan)
			dropped, pause = nil, time.After(scanPause)
		case <-pause:
			dropped, pause = p.runqueue.ScanWake, nil
		case <-ctx.Done():
			return
		}
	}
}

// stop ends the passes, and the reading of backlogs.
func (p *passes) stop(ctx context.Context) error {
	err := p.runner.Stop(ctx)
	p.backlog.Wait()
	return err
}

// Offer puts overdue rows into the backlog queue of their tag, when there is room for them. Rows that were read while
// all counted as this node's are reduced to its share, when the shares are known by then.
func (p *passes) Offer(ctx context.Context, tag string, page []row.Due) error {
	unassigned := p.arm.Unassigned()
	for p.runqueue.Room(tag) < len(page) {
		if !p.arm.Tags.Open(tag) {
			return nil
		}
		p.runqueue.AwaitRoom(tag)
		if !lifecycle.Sleep(ctx, offerPause) {
			return ctx.Err()
		}
	}
	if unassigned && !p.arm.Unassigned() {
		page, _ = batch.Split(page, func(d row.Due) bool { return p.arm.Shared(d.ID, tag) })
		p.runqueue.ScanWake.Set() // finds the others again, whose node may be gone
	}
	p.runqueue.AddDue(page, true, p.Now())
	return nil
}

// waiting returns how many rows of a tag a scan need not read again yet. Few nodes read on all the same.
func (p *passes) waiting(tag string) int {
	if !p.arm.Census.Many() {
		return 0
	}
	return p.runqueue.Overdue(tag)
}

func (p *passes) adopt(ctx context.Context, refs []row.Ref) error {
	ctx, cancel := p.CallIn(ctx)
	defer cancel()
	return p.Adopt(ctx, refs)
}

// ReleaseOrphans releases orphaned claims: rows that carry this process's token and are not owned here. A claim whose
// reply was lost was applied after all, or its rows were dropped.
func (p *passes) ReleaseOrphans(ctx context.Context) error {
	tags, err := p.leased.read(ctx)
	if err != nil {
		return err
	}
	limit := scanPage + p.runqueue.Counts().Owned
	found, err := p.stores[passOrphans].Orphans(ctx, tags, []int64{p.cfg.Process}, limit)
	if err != nil {
		return err
	}
	lost, _ := batch.Split(found, func(s row.State) bool { return !p.runqueue.Owns(s.ID) })
	for _, r := range p.PutBack(lost, "executing here, but not owned here") {
		p.arm.Written(r.Sighting())
	}
	return nil
}

// rescueHeld reports whether leases that seem over may not be over or could not be renewed: another server's clock
// judges them since a moment ago, or the database was away. It takes a new reading, because the last one may be older
// than that.
func (p *passes) rescueHeld() bool {
	if p.cfg.AtOnce {
		return false
	}
	if err := p.TakeReading(p.Life, p.stores[passRescue]); err != nil {
		p.Failed("reading the database's clock", err)
		return true
	}
	return p.Bounds.RescueHeld() || p.Outage.Holds(time.Now())
}

// rescued reports rescued rows. The rows of tags that this process serves run at once.
func (p *passes) rescued(rows []row.Row) {
	if again := p.reportRescued(rows); !p.cfg.AtOnce {
		p.runqueue.AddDue(again, false, p.Now())
	}
}

// reportRescued returns those rows that run again here.
func (p *passes) reportRescued(rows []row.Row) (again []row.Due) {
	for i := range rows {
		r := &rows[i]
		p.leases.LeaseOver(r.ID, r.Version-1)
		if r.Status == row.Failed {
			if r.CrashCount >= p.cfg.Quarantine {
				p.Metrics.Rescued(metrics.RescueQuarantined, 1)
				p.Metrics.Quarantined()
			}
			p.Log.Error("task failed after its leases were lost; see its errors",
				"task", r.ID, "tag", r.Tag, "crashes", r.CrashCount)
			p.Tell(delaytask.EventFailed, r, events.ErrLeasesLost)
			p.OnFailed(r, r.Due, events.ErrLeasesLost)
			continue
		}
		p.Metrics.Rescued(metrics.RescueReturned, 1)
		p.Log.Warn("task rescued: its lease was over",
			"task", r.ID, "tag", r.Tag, "version", r.Version, "crashes", r.CrashCount)
		p.Tell(delaytask.EventRescued, r, nil)
		p.OnRescued(r)
		if p.arm.Tags.Open(r.Tag) {
			again = append(again, r.Sighting())
		}
	}
	return again
}

// purgeable returns the tags that have tasks to purge.
func (p *passes) purgeable(ctx context.Context, status row.Status, before row.Time) (tags []string, err error) {
	oldest, err := p.stores[passPurge].Oldest(ctx, status)
	for _, of := range oldest {
		if of.Oldest < before {
			tags = append(tags, of.Tag)
		}
	}
	return tags, err
}

func (p *passes) purge(ctx context.Context, status row.Status, tags []string, before row.Time, limit int) (
	int, []string, error) {
	n, left, err := p.stores[passPurge].Purge(ctx, status, tags, before, limit)
	p.Metrics.Purged(status.String(), n)
	return n, left, err
}

// purgeRest deletes entries of the audit log whose retention is over, and processes whose tasks have gone.
func (p *passes) purgeRest(ctx context.Context) error {
	of := p.stores[passRest]
	longest := time.Duration(0)
	for _, keep := range p.cfg.Retention.ByStatus() {
		if keep <= 0 { // tasks are kept for ever
			longest = 0
			break
		}
		longest = max(longest, keep)
	}
	return errors.Join(
		p.purgeOlder(ctx, p.cfg.Retention.Audit, of.PurgeAudit), p.purgeOlder(ctx, longest, of.PurgeProcesses),
	)
}

// purgeOlder deletes what is older than keep, which is zero for what is kept for ever.
func (p *passes) purgeOlder(ctx context.Context, keep time.Duration,
	purge func(context.Context, row.Time, int) (int, error)) error {
	now, anchored := p.Bounds.AtLeast()
	if keep <= 0 || !anchored {
		return nil
	}
	for range purgeRounds {
		n, err := purge(ctx, now.Add(-keep), purgeBatch)
		if err != nil || n < purgeBatch {
			return err
		}
	}
	return nil
}

const beyondLast = "rows had ids beyond the last one and were given others; " +
	"each plain INSERT gets such an id, and is late, until this is run on the database"

// renumber gives ids within the range to rows of plain INSERTs that have got greater ones, page by page. No process
// could name those rows, so they would never run.
func (p *passes) renumber(ctx context.Context) error {
	for {
		moved, err := p.renumberPage(ctx)
		if err != nil || moved < scanPage {
			return err
		}
	}
}

func (p *passes) renumberPage(ctx context.Context) (moved int, err error) {
	moved, mend, err := p.stores[passNumbers].Renumber(ctx, ids.Last, p.cfg.NextID, scanPage)
	if moved > 0 {
		p.Health.Misnumbered(mend)
		p.Log.Error(beyondLast, "tasks", moved, "run", mend)
	}
	return moved, err
}
