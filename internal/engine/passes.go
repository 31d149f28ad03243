package engine

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/batch"
	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/metrics"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scanner"
)

// The names of the scanner's passes.
const (
	passScan    = "scan"
	passOrphans = "orphans"
	passRescue  = "rescue"
	passPurge   = "purge"
	passNumbers = "numbers"
	passAudit   = "audit"
)

// passes is what the scanner does every few seconds. It finds what memory has lost.
type passes struct {
	*deps
	stores   map[string]bounded // by pass
	arm      *armer
	holders  *holders
	ids      *ids
	executor string // of this process
	runner   *scanner.Runner
	backlog  *scanner.Compensate
	rescue   *scanner.Rescue
}

const (
	scanPage    = 500
	rescuePage  = 200
	purgeBatch  = 500
	purgeRounds = 40 // statements in one pass
	auditEvery  = time.Minute
	scanPause   = 500 * time.Millisecond
	// offerPause is how often a full backlog queue is looked at. A quick tag runs a hundred rows within it, so half of
	// the queue is left when there is room for a page.
	offerPause = 4 * time.Millisecond
)

func newPasses(c *deps, arm *armer, holders *holders, ids *ids, ahead *claimAhead, executor string) *passes {
	p := &passes{deps: c, stores: map[string]bounded{}, arm: arm, holders: holders, ids: ids, executor: executor}
	for _, pass := range []string{passScan, passOrphans, passRescue} {
		again := func() { p.runner.Kick(pass) } // its next turn would break the bounds of docs/promises.md
		p.stores[pass] = bounded{c.store, newAdaptiveTimeout(lockWait, c.cfg.CallTimeout), again}
	}
	for _, pass := range []string{passPurge, passNumbers, passAudit} {
		p.stores[pass] = bounded{c.store, newAdaptiveTimeout(c.cfg.CallTimeout, c.cfg.CallTimeout), func() {}}
	}
	p.backlog = &scanner.Compensate{
		Due: p.stores[passScan].Due, Adopt: p.adopt, Tags: arm.tags.list, Mine: arm.shared, Now: c.clock.AtLeast,
		Offer: p.offer, Page: scanPage, Log: c.Log,
	}
	p.rescue = &scanner.Rescue{
		Leases: leases{p.stores[passRescue], c}, Now: c.clock.AtLeast, Held: p.rescueHeld, Rescued: p.rescued,
		Update: func(ctx context.Context, changes []row.Change) (int, error) {
			return p.stores[passRescue].Update(ctx, nil, changes)
		},
		Quarantine: c.cfg.Quarantine, Page: rescuePage, Log: c.Log,
	}
	purge := &scanner.Purge{
		Delete: p.purge, Now: c.clock.AtLeast, Busy: ahead.saturated, Batch: purgeBatch, Limit: purgeRounds,
		Keep: c.cfg.Retention.byStatus(),
	}
	p.runner = scanner.NewRunner(c.Log,
		scanner.Pass{Name: passScan, Every: c.cfg.ScanEvery, Run: p.backlog.Pass},
		scanner.Pass{Name: passOrphans, Every: c.cfg.ScanEvery, Run: p.releaseOrphans},
		scanner.Pass{Name: passNumbers, Every: c.cfg.ScanEvery, Run: p.renumber},
		scanner.Pass{Name: passRescue, Every: rescueEvery, Run: p.rescue.Pass},
		scanner.Pass{Name: passPurge, Every: c.cfg.ScanEvery, Run: purge.Pass},
		scanner.Pass{Name: passAudit, Every: auditEvery, Run: p.purgeAudit},
	)
	return p
}

// leases is what a rescue sees of the store.
type leases struct {
	bounded
	deps *deps
}

// Discard implements [scanner.Leases].
func (l leases) Discard(ctx context.Context, broken []row.Broken) error {
	return l.deps.discardBy(ctx, l.bounded, broken)
}

// loop scans at once when the run queue has dropped rows.
func (p *passes) loop(ctx context.Context) {
	for {
		select {
		case <-p.runqueue.ScanWake:
			p.runner.Kick(passScan)
			lifecycle.Sleep(ctx, scanPause) // rows of an overloaded tag are dropped all the time
		case <-ctx.Done():
			return
		}
	}
}

// stop ends the passes, and the reading of backlogs.
func (p *passes) stop() error {
	ctx, cancel := p.Call()
	defer cancel()
	err := p.runner.Stop(ctx)
	p.backlog.Wait()
	return err
}

// offer puts overdue rows into the backlog queue of their tag, when there is room for them. Rows that were read while
// all counted as this node's are reduced to its share, when the shares are known by then.
func (p *passes) offer(ctx context.Context, tag string, page []row.Due) error {
	unassigned := p.arm.unassigned()
	for p.runqueue.Room(tag) < len(page) {
		if !p.arm.tags.open(tag) {
			return nil
		}
		p.runqueue.AwaitRoom(tag)
		if !lifecycle.Sleep(ctx, offerPause) {
			return ctx.Err()
		}
	}
	if unassigned && !p.arm.unassigned() {
		page, _ = batch.Split(page, func(d row.Due) bool { return p.arm.shared(d.ID, tag) })
		p.runqueue.ScanWake.Set() // finds the others again, whose node may be gone
	}
	p.runqueue.AddDue(page, true, p.now())
	return nil
}

func (p *passes) adopt(ctx context.Context, refs []row.Ref) error {
	ctx, cancel := p.CallIn(ctx)
	defer cancel()
	return p.table.adopt(ctx, refs)
}

// releaseOrphans releases orphaned claims: rows that carry this process's token and are not owned here. A claim whose
// reply was lost was applied after all, or its rows were dropped.
func (p *passes) releaseOrphans(ctx context.Context) error {
	for _, mark := range []string{"", row.PopMark} {
		found, err := p.stores[passOrphans].Orphans(ctx, mark+p.executor+":", scanPage+p.runqueue.Counts().Owned)
		if err != nil {
			return err
		}
		lost, _ := batch.Split(found, func(s row.State) bool { return !p.runqueue.Owns(s.ID) })
		for _, r := range p.release(lost, "executing here, but not owned here") {
			p.arm.written(r.Sighting())
		}
	}
	return nil
}

// rescueHeld reports whether leases that seem over may not be over or could not be renewed: another server's clock
// judges them since a moment ago, or the database was away. It takes a new reading, for the last one may be older than
// that.
func (p *passes) rescueHeld() bool {
	if err := p.takeReading(p.Life, p.stores[passRescue]); err != nil {
		p.Failed("reading the database's clock", err)
		return true
	}
	return p.clock.RescueHeld() || p.outage.holds(time.Now())
}

// rescued reports rescued rows, and runs those of tags that this process serves at once.
func (p *passes) rescued(rows []row.Row) { p.runqueue.AddDue(p.reportRescued(rows), false, p.now()) }

// reportRescued returns those rows that run again here.
func (p *passes) reportRescued(rows []row.Row) (again []row.Due) {
	for i := range rows {
		r := &rows[i]
		p.holders.leaseOver(r.ID, r.Version-1)
		if r.Status == row.Failed {
			if r.CrashCount >= p.cfg.Quarantine {
				p.Metrics.Rescued(metrics.RescueQuarantined, 1)
				p.Metrics.Quarantined()
			}
			p.Log.Error("task failed after its leases were lost; see its errors",
				"task", r.ID, "tag", r.Tag, "crashes", r.CrashCount)
			p.watch.tell(processor.EventFailed, r, errLeasesLost)
			p.onFailed(r, r.Due, errLeasesLost)
			continue
		}
		p.Metrics.Rescued(metrics.RescueReturned, 1)
		p.Log.Warn("task rescued: its lease was over",
			"task", r.ID, "tag", r.Tag, "version", r.Version, "crashes", r.CrashCount)
		p.watch.tell(processor.EventRescued, r, nil)
		p.onRescued(r)
		if p.arm.tags.open(r.Tag) {
			again = append(again, r.Sighting())
		}
	}
	return again
}

func (p *passes) purge(ctx context.Context, status row.Status, before row.Time, limit int) (int, error) {
	n, err := p.stores[passPurge].Purge(ctx, status, before, limit)
	p.Metrics.Purged(status.String(), n)
	return n, err
}

// purgeAudit deletes entries of the audit log whose retention is over.
func (p *passes) purgeAudit(ctx context.Context) error {
	keep := p.cfg.Retention.Audit
	now, anchored := p.clock.AtLeast()
	if keep <= 0 || !anchored {
		return nil
	}
	for range purgeRounds {
		n, err := p.stores[passAudit].PurgeAudit(ctx, now.Add(-keep), purgeBatch)
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
	moved, mend, err := p.stores[passNumbers].Renumber(ctx, cluster.Last, p.ids.Next, scanPage)
	if moved > 0 {
		p.health.misnumbered(mend)
		p.Log.Error(beyondLast, "tasks", moved, "run", mend)
	}
	return moved, err
}
