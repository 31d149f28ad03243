package overview

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/eyes/rollup"
	"github.com/delaytask/delaytask/internal/eyes/standing"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// Snapshot is what one reading has found. It is never changed: all viewers share it.
type Snapshot struct {
	read   time.Time // by this machine, when the reading began
	now    row.Time
	nodes  []row.Node
	paused map[string]row.TagState
	clock  Clock
	apart  []string // servers of two databases

	lockedTags []string // whose writes wait in this process
	hanging    []Hanging
	counts     []listing.TagCount // of tasks that have not ended, and of failed ones
	due        map[string]*dueSoon
	failed     map[string]*failures
	retried    map[string]*failures
	leases     leases
	missing    map[report.OverviewPart]error

	retention map[row.Status]time.Duration
	seldom
}

// seldom is what is not read each time: it hardly changes within 5 s, or costs more.
type seldom struct {
	ended    kept[[]listing.TagCount] // of completed and cancelled tasks
	history  kept[*history]
	forecast kept[*report.Forecast]
	locks    kept[[]Lock]
	standing kept[[]standing.Finding] // schedules
	replica  kept[Replica]
	pauses   map[string]rollup.Pause
}

const (
	keepEnded    = 30 * time.Second
	keepForecast = 30 * time.Second
	keepLocks    = 15 * time.Second
	keepStanding = 30 * time.Second
	keepTimeout  = 30 * time.Second // that a part took too long
)

// kept is what was read, when, and until when it is kept.
type kept[T any] struct {
	found     T
	err       error
	at, until row.Time
}

// refresh reads anew when that is due, or when the clock was set back. An error is kept only if it is there at the next
// reading as well: where an operator has to act, and for a while where the read took too long.
func (k *kept[T]) refresh(now, until row.Time, read func() (T, error)) error {
	if k.at <= now && now < k.until {
		return k.err
	}
	found, err := read()
	*k = kept[T]{err: err, at: now}
	if err == nil {
		k.found = found
	}
	switch {
	case err == nil, row.ClassOf(err) == row.ClassOperator:
		k.until = until
	case row.Ended(err):
		k.until = min(until, now.Add(keepTimeout))
	}
	return err
}

// dueSoon is what is overdue of a tag, and what falls due within a minute.
type dueSoon struct {
	overdue, next         int64
	moreOverdue, moreNext bool
	oldest                row.Place // of what is overdue
}

// failures are tasks of a tag that have failed lately, or that are tried again.
type failures struct {
	tasks int64
	more  bool
	first row.Time
	group *listing.Group // the largest of those that were looked at; nil for none
}

// leases are those that are not renewed.
type leases struct {
	over   []row.Row
	silent map[string][]row.State // of silent processes, by their tokens
	more   bool                   // they may hold more
}

// cache is what one reading leaves to the next.
type cache struct {
	seldom
	without map[string]row.Time // silent processes without leases, by token, with their heartbeat
}

// reading is one in the making.
type reading struct {
	*Snapshot
	*cache
	from *limited
	of   *Process

	mu sync.Mutex // guards Snapshot.missing; no other lock is taken while it is held
}

// read makes a reading. It fails when the database does not tell the time and who is there.
func (c *cache) read(ctx context.Context, from *limited, of *Process) (*Snapshot, error) {
	s := &Snapshot{read: time.Now(), paused: map[string]row.TagState{}, missing: map[report.OverviewPart]error{}}
	nodes, reads, err := from.Nodes(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the nodes: %w", err)
	}
	tags, _, err := from.Tags(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the tags: %w", err)
	}
	s.nodes, s.now = nodes, reads.Time
	for _, t := range tags {
		if t.Paused {
			s.paused[t.Tag] = t
		}
	}
	r := &reading{Snapshot: s, cache: c, from: from, of: of}
	var lanes sync.WaitGroup
	history := make(chan struct{}) // closed when it was read, or is missing
	lanes.Go(func() {
		r.part(ctx, report.PartHistory, r.readHistory)
		close(history)
		r.part(ctx, report.PartForecast, r.readForecast)
		r.part(ctx, report.PartLocks, r.readLocks)
		r.part(ctx, report.PartSchedules, r.readSchedules)
		r.readReplica(ctx)
	})
	lanes.Go(func() {
		r.part(ctx, report.PartCounts, r.readCounts)
		r.part(ctx, report.PartDue, r.readDue)
		r.part(ctx, report.PartLeases, r.readLeases)
		<-history
		r.part(ctx, report.PartFailures, r.readFailures)
	})
	lanes.Wait()
	s.clock, s.hanging, s.retention, s.seldom = of.Clock(), of.Hanging(), of.Retention, c.seldom
	if of.Apart != nil {
		s.apart = of.Apart()
	}
	if of.LockedTags != nil {
		s.lockedTags = of.LockedTags()
	}
	return s, nil
}

// part reads a part, which is missing when that fails.
func (r *reading) part(ctx context.Context, part report.OverviewPart, read func(context.Context) error) {
	if err := read(ctx); err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.missing[part] = err
	}
}

func isAlive(n row.Node, now row.Time) bool { return cluster.IsAlive(n, now) }
