package engine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/batch"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

// claimer takes what waits in the ready queues, slots first, and claims it in one guarded statement. While statements
// are in flight the next ones gather, so a claim is as large as the load asks for.
type claimer struct {
	*deps
	arm         *armer
	ahead       *claimAhead
	start       func(*attempt) // hands a claimed row on
	executor    string         // "host:pid:process token"
	ip          uint32
	number      atomic.Int64
	timely      chan struct{} // one for each claim in flight that has not taken long
	backlog     chan struct{}
	open        sync.WaitGroup // claims that have no answer yet, however long they have taken, and those whose outcome is being found out
	batchSize   batchSize
	lockChecks  lockChecks
	refusals    refusals
	unclaimable unclaimable
}

func newClaimer(c *deps, arm *armer, ahead *claimAhead, start func(*attempt), executor string, ip uint32) *claimer {
	return &claimer{
		deps: c, arm: arm, ahead: ahead, start: start, executor: executor, ip: ip,
		timely: make(chan struct{}, timelyClaims), backlog: make(chan struct{}, backlogClaims),
	}
}

// idle returns a channel that is closed when no claim is in flight any more, nor of unknown outcome. The loop must
// have ended.
func (c *claimer) idle() <-chan struct{} {
	done := make(chan struct{})
	c.Go(func() {
		c.open.Wait()
		close(done)
	})
	return done
}

func (c *claimer) loop(ctx context.Context) {
	for {
		select {
		case <-c.runqueue.ClaimWake:
		case <-ctx.Done():
			return
		}
		for ctx.Err() == nil && (c.next(c.timely, false) || c.next(c.backlog, true)) {
		}
	}
}

// longClaim is when a claim makes room for the next one and gives its slots back, although it has no answer yet: it
// may have none until the call's time is up, and what is due must not wait for that. Should its rows be won after
// all, they wait for slots as those do that are claimed beyond them.
const longClaim = time.Second

// next claims rows, timely ones or the backlog, and reports whether there were any. What is due now never travels
// with the backlog: a large claim takes long, and a task that was to start meanwhile would be late.
func (c *claimer) next(inFlight chan struct{}, backlog bool) bool {
	if c.refusals.waiting(time.Now()) {
		return false
	}
	select {
	case inFlight <- struct{}{}:
	default:
		return false
	}
	items := c.runqueue.Pick(c.batchSize.rows(), c.now(), backlog)
	if len(items) == 0 {
		<-inFlight
		return false
	}
	leave := sync.OnceFunc(func() {
		<-inFlight
		c.runqueue.ClaimWake.Set()
	})
	forPops, forSlots := batch.Split(items, func(it *runqueue.Item) bool { return it.ForPop })
	f := &flight{parts: []part{{forSlots, ""}, {forPops, row.PopMark}}}
	long := time.AfterFunc(longClaim, func() {
		for _, it := range f.open() { // the others run, and have their slots
			c.runqueue.Yield(it, runqueue.Slot)
		}
		leave()
	})
	c.open.Add(1)
	c.Go(func() {
		defer c.open.Done()
		for p, ok := f.first(); ok; p, ok = f.first() {
			f.answered(c.claim(f, p))
		}
		long.Stop()
		leave()
	})
	return true
}

// claim claims the rows of one part, which are held and have their slots, and starts those that were won. It returns
// what is to be claimed instead.
func (c *claimer) claim(f *flight, p part) (halves []part) {
	items := c.checkLocks(p.items)
	if len(items) == 0 {
		return nil
	}
	claim := row.Claim{Executor: c.freshExecutor(p.mark), IP: c.ip, Rows: make([]row.Ref, len(items))}
	for i, it := range items {
		claim.Rows[i] = row.Ref{ID: it.ID, Version: it.Version}
	}
	ctx, cancel := c.Call()
	defer cancel()
	silent := time.AfterFunc(lockWait, func() { c.health.claimed(errSilent) })
	sent := time.Now()
	claimed, err := c.store.Claim(ctx, claim)
	received := time.Now()
	silent.Stop()
	c.health.claimed(err)
	c.Metrics.Batch("claim", len(items))
	if err != nil {
		c.Metrics.ClaimFailed(len(items))
		c.Failed("claiming", err)
		if d := received.Sub(sent); d > c.cfg.CallTimeout/longPart {
			c.batchSize.took(len(items), d, c.cfg.CallTimeout) // what outlasts the call never tells how long the leases are
		}
		return c.failed(f, part{items, p.mark}, claim.Executor, sent, err)
	}
	c.refusals.over()
	c.runqueue.SetRoundTrip(c.ahead.took(received.Sub(sent)))
	if len(claimed.Rows) > 0 {
		f.taken = true
		c.batchSize.took(len(items), received.Sub(sent), shortestLease(claimed.Rows))
	}
	c.observe(claimed.Reading, sent, received)
	c.won(items, claimed, sent)
	return nil
}

// freshExecutor names one claim statement, so that the read-back finds just its winners.
func (c *claimer) freshExecutor(mark string) string {
	return fmt.Sprintf("%s%s:%d", mark, c.executor, c.number.Add(1))
}

// won starts the rows that the claim has won and lets the others go: somebody else has them, or they changed.
func (c *claimer) won(items []*runqueue.Item, claimed row.Claimed, sent time.Time) {
	won := make(map[int64]*row.Row, len(claimed.Rows))
	for i := range claimed.Rows {
		won[claimed.Rows[i].ID] = &claimed.Rows[i]
	}
	lost := len(items) - len(won) - len(claimed.Broken)
	c.Metrics.Claimed(len(won), lost)
	if lost*contentionShare > len(items) {
		c.runqueue.Contention.Set()
	}
	for _, it := range items {
		r := won[it.ID]
		if r == nil {
			c.runqueue.Release(it, runqueue.Ended)
			continue
		}
		c.start(newAttempt(it, *r, claimed.Reading.Time, sent))
	}
	c.discard(claimed.Broken)
}

func shortestLease(won []row.Row) time.Duration {
	shortest := won[0].TTR
	for i := range won {
		shortest = min(shortest, won[i].TTR)
	}
	return max(shortest, row.MinTTR)
}

// portion is how many rows a claim may take. A large claim costs the database the least, as long as it is back well
// before the leases of its rows end. On a server that is slow for the moment all of it would be in vain and be claimed
// again, and the server slower yet: many processes may keep it busy that way for ever. So the portion is halved after a
// claim that took long, down to one row, and doubled after a full one that was quick.
type batchSize struct {
	less atomic.Int64 // rows fewer than runqueue.MaxClaim
}

// Of the shortest lease that it has won, a claim takes long that takes half, for the tasks have to find slots yet, and
// to run. One is quick that takes a quarter. Smaller parts would punish a long way to the database, which a small claim
// goes as slowly as a large one.
const (
	longPart  = 2
	quickPart = 4
)

func (s *batchSize) rows() int { return runqueue.MaxClaim - int(s.less.Load()) }

// took learns from a claim of so many rows.
func (s *batchSize) took(rows int, d, lease time.Duration) {
	switch {
	case d > lease/longPart:
		s.set(rows / 2)
	case d < lease/quickPart && rows >= s.rows():
		s.set(2 * rows)
	}
}

func (s *batchSize) set(rows int) {
	s.less.Store(int64(runqueue.MaxClaim - min(max(rows, 1), runqueue.MaxClaim)))
}

// refusals counts the claims in a row that the database did not take. From the third on all claims wait together: rows
// that came back one by one would make one statement each, as many as the database can refuse.
type refusals struct {
	mu    sync.Mutex
	n     int
	until time.Time
}

const slowRetryAfter = 3

// another counts one more and returns how long claims wait now.
func (r *refusals) another(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n++
	if r.n < slowRetryAfter {
		return 0
	}
	d := lifecycle.Backoff(min(r.n, longestClaimPause))
	r.until = now.Add(d)
	return d
}

// longestClaimPause is the pause after which a database that is back is noticed: about half a second.
const longestClaimPause = 6

func (r *refusals) over() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n, r.until = 0, time.Time{}
}

func (r *refusals) waiting(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.until)
}

// probes remembers which tags have met a locked row lately.
type lockChecks struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (k *lockChecks) note(items []*runqueue.Item) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.until == nil {
		k.until = map[string]time.Time{}
	}
	for _, it := range items {
		k.until[it.Tag()] = time.Now().Add(lockCheckFor)
	}
}

func (k *lockChecks) mayBeLocked(items []*runqueue.Item) (asked []*runqueue.Item) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.until) == 0 {
		return nil
	}
	now := time.Now()
	for _, it := range items {
		until, ok := k.until[it.Tag()]
		switch {
		case !ok:
		case now.Before(until):
			asked = append(asked, it)
		default:
			delete(k.until, it.Tag())
		}
	}
	return asked
}

// checkLocks probes the rows of tags that have met a lock within the last minute, before they are claimed.
func (c *claimer) checkLocks(items []*runqueue.Item) (rest []*runqueue.Item) {
	asked := c.lockChecks.mayBeLocked(items)
	if len(asked) == 0 {
		return items
	}
	return c.leaveOutLocked(items, asked)
}

// leaveOutLocked asks which of the rows somebody else's transaction holds, and leaves them out for a while.
func (c *claimer) leaveOutLocked(items, asked []*runqueue.Item) (rest []*runqueue.Item) {
	ctx, cancel := c.Call()
	defer cancel()
	held, _, _ := splitLocked(ctx, c.table, asked, func(it *runqueue.Item) int64 { return it.ID })
	if len(held) == 0 {
		return items
	}
	c.lockChecks.note(held)
	for _, it := range held {
		it.Tries++
		c.later([]*runqueue.Item{it}, lockBackoff(it.Tries))
	}
	_, rest = batch.Split(items, func(it *runqueue.Item) bool { return slices.Contains(held, it) })
	return rest
}

// flight is what was picked together. It is claimed part by part; when the database refuses a part for one of its rows,
// its halves are claimed instead, until that row is alone.
type flight struct {
	refused int  // parts that were
	taken   bool // of one that was not, rows were won

	mu    sync.Mutex
	parts []part // that have no answer yet; the first is being claimed
}

// part is what one statement claims. The mark tells rows that are handed to a pop from those that a processor runs.
type part struct {
	items []*runqueue.Item
	mark  string
}

// first returns the part whose turn it is, and whether there is one.
func (f *flight) first() (part, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.parts) == 0 {
		return part{}, false
	}
	return f.parts[0], true
}

// answered takes out the first part. Its halves, if there are any, are claimed after the others: of many rows that are
// refused some may be together, and the rest shall not wait until each of them is alone.
func (f *flight) answered(halves []part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parts = append(slices.Clone(f.parts[1:]), halves...)
}

// rest takes out the parts of the mark behind the first and returns their rows.
func (f *flight) rest(mark string) (items []*runqueue.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	like, others := batch.Split(f.parts[1:], func(p part) bool { return p.mark == mark })
	f.parts = append(f.parts[:1:1], others...)
	for _, p := range like {
		items = append(items, p.items...)
	}
	return items
}

// open returns the rows that have no answer yet.
func (f *flight) open() (items []*runqueue.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.parts {
		items = append(items, p.items...)
	}
	return items
}
