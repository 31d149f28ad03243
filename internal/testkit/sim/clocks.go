package sim

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// clocks are the clocks of the servers that were the database, one after another: how far each was ahead of the first,
// whose clock may be slewed, and the others with it. A process learns of a failover only by an answer to a later
// question. Until then it goes by an older clock. So the judge takes the latest time among the clocks that the process
// may believe in to decide what was early.
type clocks struct {
	db     *pace // the first server's
	slewed bool  // not only as the processes' are

	mu      sync.Mutex
	offsets []time.Duration // the first server's is 0
}

// server is how many failovers there were.
func (c *clocks) server() int { return len(c.since(0)) - 1 }

func (c *clocks) now() time.Duration { return c.since(c.server())[0] }

func (c *clocks) step(offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offsets = append(c.offsets, offset)
}

// since returns the offsets of a server and of those that came after it.
func (c *clocks) since(server int) []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]time.Duration{0}, c.offsets...)[server:]
}

// apart is how far the clocks of two servers differ.
func (c *clocks) apart(a, b int) time.Duration {
	offsets := c.since(0)
	return (offsets[a] - offsets[b]).Abs()
}

// listener is a store as a process sees it. It notes which server the process knows by its answers, and gives each
// process a host of its own.
type listener struct {
	store.Store
	clocks *clocks
	host   string

	mu      sync.Mutex
	server  int                 // an answer was surely not older than this one
	name    string              // of that server
	width   time.Duration       // of its quickest answer: so well is its clock known
	past    []epoch             // of the servers before it
	sent    time.Time           // when the last answer was asked for
	took    time.Duration       // that answer
	before  time.Duration       // doubt before it came
	claimed map[int64]time.Time // when the answer to the last claim of a task came
}

// epoch is the time until which a process may have believed in a server and in those after it.
type epoch struct {
	server int
	until  time.Time
	db     time.Time // by the first server's clock
}

func (e *listener) Now(ctx context.Context) (row.Reading, error) {
	asked, sent := e.clocks.server(), time.Now()
	reading, err := e.Store.Now(ctx)
	if err == nil {
		e.observe(asked, reading.Server, time.Since(sent))
	}
	return reading, err
}

func (e *listener) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	asked, sent := e.clocks.server(), time.Now()
	claimed, err := e.Store.Claim(ctx, c)
	if err == nil {
		e.noteClaimed(claimed.Rows)
		e.observe(asked, claimed.Reading.Server, time.Since(sent))
	}
	return claimed, err
}

func (e *listener) Join(ctx context.Context, n row.Node, staleAfter time.Duration) (bool, error) {
	n.Host = e.host
	return e.Store.Join(ctx, n, staleAfter)
}

func (e *listener) Beat(ctx context.Context, n row.Node) (bool, error) {
	n.Host = e.host
	return e.Store.Beat(ctx, n)
}

func (e *listener) noteClaimed(rows []row.Row) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.claimed == nil {
		e.claimed = map[int64]time.Time{}
	}
	for i := range rows {
		e.claimed[rows[i].ID] = time.Now()
	}
}

// claimedAt is the earliest moment when the process may have decided to run a task.
func (e *listener) claimedAt(id int64) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at, known := e.claimed[id]; known {
		return at
	}
	return time.Now()
}

// observe notes an answer that took so long, from the server that was asked or from a later one. A clock that took over
// under the same name shows only in an answer that comes sooner than the clocks are apart: otherwise the answer may
// have been under way for as long.
func (e *listener) observe(asked int, name string, took time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.name == "" {
		e.name = name
	}
	e.before = e.doubt()
	e.sent, e.took = time.Now().Add(-took), took
	switch {
	case asked == e.server:
		e.width = min(cmp.Or(e.width, took), took)
	case asked > e.server && (name != e.name || took+e.width < e.clocks.apart(e.server, asked)):
		e.past = append(e.past, epoch{e.server, time.Now(), e.clocks.db.now()})
		e.server, e.name, e.width = asked, name, took
	}
}

// doubt is by how much the process may err about the database's time while that is slewed, and no answer has shown it:
// by the slew since the last answer, and by what its request has hidden.
func (e *listener) doubt() time.Duration {
	if !e.clocks.slewed {
		return 0
	}
	return time.Duration(float64(time.Since(e.sent))*1.2*maxSlew) + e.took
}

// latestTime returns the latest time of the database that the process may have gone by when it decided, at the given
// moment or later. A task that was due by an older server's clock, before the process knew of the next one, stays due:
// it may have waited for a slot since.
func (e *listener) latestTime(decided time.Time) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	latest := e.clocks.db.now().Add(max(e.doubt(), e.before)).Add(slices.Max(e.clocks.since(e.server)))
	for _, g := range e.past {
		if at := g.db.Add(slices.Max(e.clocks.since(g.server))); !g.until.Before(decided) && at.After(latest) {
			latest = at
		}
	}
	return latest
}

// earliestTime is the database's time by the clock furthest behind among those that the process may believe in now. In
// the moment of an answer the process may still go by the older one.
func (e *listener) earliestTime() time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	now, server := time.Now(), e.server
	db := e.clocks.db.now().Add(-max(e.doubt(), e.before))
	if last := len(e.past) - 1; last >= 0 && !e.past[last].until.Before(now) {
		server = e.past[last].server
	}
	return db.Add(slices.Min(e.clocks.since(server)))
}
