package run

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
	"github.com/delaytask/delaytask/internal/store"
)

const (
	timelyClaims    = 2 // in flight, of what is due now or soon
	backlogClaims   = 1 // of what is overdue: large, and in the way of no other
	claimsAtOnce    = 3 // without an answer: the store has no more connections for them
	contentionShare = 8 // one lost row in 8 of a claim is no accident
)

// claimer claims as many rows of the ready queues as there are slots, many in one guarded statement. Rows gather while
// statements are in flight, so the load decides how large a claim is.
type claimer struct {
	*deps
	start       func(*Attempt) // hands a claimed row on
	process     string         // what its executors are called
	number      atomic.Int64   // of the last claim
	timely      chan struct{}  // holds one for each timely claim in flight, until that has waited long
	backlog     chan struct{}  // the same for the backlog
	sent        chan struct{}  // holds one for each of both until it has its answer
	open        sync.WaitGroup // counts claims without an answer, and claims whose outcome is being resolved
	batchSize   batchSize
	popSize     batchSize // of claims for pops, which bodies make smaller
	lockChecks  lockChecks
	apart       *table.Turns
	notTaken    notTaken
	unclaimable unclaimable
}

func newClaimer(c *deps, start func(*Attempt)) *claimer {
	return &claimer{
		deps: c, start: start, process: c.cfg.Process.String(),
		timely: make(chan struct{}, timelyClaims), backlog: make(chan struct{}, backlogClaims),
		sent: make(chan struct{}, claimsAtOnce), apart: table.NewTurns(runqueue.MaxClaim),
	}
}

// idle returns a channel that is closed when no claim is in flight or of unknown outcome. The loop must have ended.
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

// popBytes bounds the bodies that a claim for pops reads. Who pops may have any size of them, and many at once.
const popBytes = 16 << 20

// longClaim is how long a claim waits for its answer before it makes room for the next one and gives its slots back. It
// may have no answer until the call's deadline, and what is due must not wait for that. Rows that it wins after all
// wait for slots, as prefetched ones do.
const longClaim = time.Second

// Where claims take less than 1/silentTrips of it, one without an answer after silentClaim is likely to wait for a
// lock. It makes room. Whether it waits is for the server to say: on a slow disk it may not.
const (
	silentClaim = 250 * time.Millisecond
	silentTrips = 16
)

// next claims rows, timely ones or the backlog, and reports whether there were any. What is due now never shares a
// statement with the backlog. A large claim takes long, and tasks that are due meanwhile would be late.
func (c *claimer) next(inFlight chan struct{}, backlog bool) bool {
	if c.notTaken.waiting(time.Now()) {
		return false
	}
	if !take(inFlight) {
		return false
	}
	if !take(c.sent) {
		<-inFlight
		return false
	}
	items := c.runqueue.Pick(c.batchSize.rows(), c.Now(), backlog)
	if len(items) == 0 {
		<-inFlight
		<-c.sent
		return false
	}
	givesBack := func(place <-chan struct{}) func() {
		return func() {
			<-place
			c.runqueue.ClaimWake.Set()
		}
	}
	c.fly(&flight{parts: parts(c.sendApart(items))}, givesBack(inFlight), givesBack(c.sent))
	return true
}

// take takes a place, if one is free.
func take(place chan<- struct{}) bool {
	select {
	case place <- struct{}{}:
		return true
	default:
		return false
	}
}

// parts parts rows for slots from those for pops.
func parts(items []*runqueue.Item) []part {
	forPops, forSlots := batch.Split(items, func(it *runqueue.Item) bool { return it.ForPop })
	return []part{{forSlots, false}, {forPops, true}}
}

// fly claims all parts of a flight, one after the other. It calls end at the end, and leave then or when it takes long.
func (c *claimer) fly(f *flight, leave, end func()) {
	leave = sync.OnceFunc(leave)
	silent := time.AfterFunc(max(silentClaim, silentTrips*c.arm.Ahead.Usual()), leave)
	long := time.AfterFunc(longClaim, func() {
		for _, it := range f.open() { // the others run and need their slots
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
		silent.Stop()
		long.Stop()
		leave()
		end()
	})
}

// claim claims the rows of one part, which are owned and have slots, and starts those that it wins. It returns the
// halves that are to be claimed instead when the database refuses one of the rows.
func (c *claimer) claim(f *flight, p part) (halves []part) {
	items := c.checkLocks(p.items)
	if len(items) == 0 {
		return nil
	}
	claim := row.Claim{Executor: c.freshExecutor(p.forPop), IP: c.cfg.IP}
	if p.forPop {
		rows := min(c.popSize.rows(), len(items))
		c.later(items[rows:], 0)
		items, claim.Bytes = items[:rows], popBytes
	}
	claim.Rows = make([]row.Ref, len(items))
	for i, it := range items {
		claim.Rows[i] = row.Ref{ID: it.ID, Version: it.Version}
	}
	ctx, cancel := c.Call()
	defer cancel()
	if f.apart != "" {
		ctx = store.Apart(ctx)
	}
	sent := time.Now()
	silent := time.AfterFunc(table.LockWait, func() { c.Health.Claimed(table.ErrSilent, sent) })
	claimed, err := c.Store.Claim(ctx, claim)
	received := time.Now()
	silent.Stop()
	c.Health.Claimed(err, sent)
	c.Metrics.Batch("claim", len(items))
	if err != nil {
		c.Metrics.ClaimFailed(len(items))
		c.Failed("claiming", err)
		if d := received.Sub(sent); d > c.cfg.CallTimeout/longPart {
			// A call without an answer does not tell how long the leases are.
			c.batchSize.shrink(len(items))
		}
		return c.failed(f, part{items, p.forPop}, claim.Executor, sent, err)
	}
	c.notTaken.over()
	c.passedApart(f)
	c.runqueue.SetRoundTrip(c.arm.Ahead.Took(received.Sub(sent)))
	if len(claimed.Rows) > 0 {
		f.taken = true
		c.batchSize.took(len(items), received.Sub(sent), shortestLease(claimed.Rows))
	}
	if p.forPop {
		c.popSize.read(len(claimed.Rows), len(claimed.Unread))
	}
	c.Observe(claimed.Reading, sent, received)
	c.won(items, claimed, sent)
	return nil
}

// freshExecutor names one claim statement, so that reading back finds just the rows that it has won.
func (c *claimer) freshExecutor(forPop bool) row.Executor {
	e := row.Executor{Process: c.cfg.Process.ID, Claim: c.number.Add(1)}
	if forPop {
		return e.ForPop()
	}
	return e
}

// won starts the rows that the claim has won, and releases the others: another process has them, or they have changed.
func (c *claimer) won(items []*runqueue.Item, claimed row.Claimed, sent time.Time) {
	won := make(map[int64]*row.Row, len(claimed.Rows))
	for i := range claimed.Rows {
		won[claimed.Rows[i].ID] = &claimed.Rows[i]
	}
	for i := range claimed.Unread {
		won[claimed.Unread[i].ID] = &claimed.Unread[i]
	}
	lost := len(items) - len(won) - len(claimed.Broken)
	c.Metrics.Claimed(len(won), lost)
	c.arm.Claimed(len(items), lost)
	if lost*contentionShare > len(items) {
		c.runqueue.Contention.Set()
	}
	for _, it := range items {
		r := won[it.ID]
		if r == nil {
			c.runqueue.Release(it, runqueue.Ended)
			continue
		}
		r.Process = c.process
		a := newAttempt(it, *r, claimed.Reading.Time, sent)
		a.unread = slices.ContainsFunc(claimed.Unread, func(u row.Row) bool { return u.ID == it.ID })
		c.start(a)
	}
	c.Discard(claimed.Broken)
}

func shortestLease(won []row.Row) time.Duration {
	shortest := won[0].TTR
	for i := range won {
		shortest = min(shortest, won[i].TTR)
	}
	return max(shortest, row.MinTTR)
}

// batchSize is how many rows a claim may take. A large claim costs the database least, if it is back well before the
// leases of its rows end. A claim that a slow server answers too late is repeated, which makes the server slower still.
// So a claim that took long leaves half of its own rows as the size, at least one: even that many were too slow. A full
// claim that was quick doubles the size.
type batchSize struct {
	less atomic.Int64 // rows fewer than runqueue.MaxClaim
}

// A claim has taken long from 1/longPart of the shortest lease that it has won, and was quick below 1/quickPart.
// Smaller parts would punish a long round trip, which is as long for a small claim.
const (
	longPart  = 2
	quickPart = 4
)

func (s *batchSize) rows() int { return runqueue.MaxClaim - int(s.less.Load()) }

// took learns from a claim.
func (s *batchSize) took(rows int, d, lease time.Duration) {
	switch {
	case d > lease/longPart:
		s.shrink(rows)
	case d < lease/quickPart && rows >= s.rows():
		s.set(2 * rows)
	}
}

// shrink leaves half of the rows of a claim. A larger claim may be answered after a smaller one.
func (s *batchSize) shrink(rows int) { s.set(min(rows/2, s.rows())) }

// read learns from a claim of which so many rows were read, and others not for the size of their bodies.
func (s *batchSize) read(rows, unread int) {
	switch {
	case unread > 0:
		s.set(rows)
	case rows >= s.rows():
		s.set(2 * rows)
	}
}

func (s *batchSize) set(rows int) {
	s.less.Store(int64(runqueue.MaxClaim - min(max(rows, 1), runqueue.MaxClaim)))
}

// notTaken counts the claims in a row that the database did not take. From the third on all claims wait together. Rows
// that waited one by one would make a statement each.
type notTaken struct {
	mu    sync.Mutex
	n     int
	until time.Time
}

const slowRetryAfter = 3

// another counts one more, and returns how long claims wait now.
func (r *notTaken) another(now time.Time) time.Duration {
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

// longestClaimPause bounds the pause to about half a second, so that a database that is back is noticed soon.
const longestClaimPause = 6

func (r *notTaken) over() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.n, r.until = 0, time.Time{}
}

func (r *notTaken) waiting(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.until)
}

// lockChecks remembers which tags have met a locked row within [table.LockCheckFor].
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
		k.until[it.Tag()] = time.Now().Add(table.LockCheckFor)
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

// checkLocks leaves out locked rows of tags that have met a lock lately.
func (c *claimer) checkLocks(items []*runqueue.Item) (rest []*runqueue.Item) {
	asked := c.lockChecks.mayBeLocked(items)
	if len(asked) == 0 {
		return items
	}
	return c.leaveOutLocked(items, asked)
}

// leaveOutLocked asks which rows other transactions hold, leaves them out for a while, and returns the rest.
func (c *claimer) leaveOutLocked(items, asked []*runqueue.Item) (rest []*runqueue.Item) {
	ctx, cancel := c.Call()
	defer cancel()
	held, _, _ := table.SplitLocked(ctx, c.Table, asked, func(it *runqueue.Item) int64 { return it.ID })
	if len(held) == 0 {
		return items
	}
	c.lockChecks.note(held)
	hinder(held, delaytask.LateLocked)
	for _, it := range held {
		it.Tries++
		c.later([]*runqueue.Item{it}, table.LockBackoff(it.Tries))
	}
	_, rest = batch.Split(items, func(it *runqueue.Item) bool { return slices.Contains(held, it) })
	return rest
}

// flight is what was picked together. It is claimed part by part. When the database refuses a part for one of its rows,
// its halves are claimed instead, until that row is alone.
type flight struct {
	refused int    // counts refused parts
	taken   bool   // a part has won rows
	apart   string // the tag of all rows, when these travel apart from others

	mu    sync.Mutex
	parts []part // those without an answer; the first is being claimed
}

// part is what one statement claims. Rows that are handed to a pop are claimed apart from those that a processor runs.
type part struct {
	items  []*runqueue.Item
	forPop bool
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

// answered takes out the first part. Its halves are claimed after the other parts, which need not wait until each
// refused row is alone.
func (f *flight) answered(halves []part) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.parts = append(slices.Clone(f.parts[1:]), halves...)
}

// rest takes out all parts but the first that are for a pop, or are not, and returns their rows.
func (f *flight) rest(forPop bool) (items []*runqueue.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	like, others := batch.Split(f.parts[1:], func(p part) bool { return p.forPop == forPop })
	f.parts = append(f.parts[:1:1], others...)
	for _, p := range like {
		items = append(items, p.items...)
	}
	return items
}

// open returns the rows without an answer.
func (f *flight) open() (items []*runqueue.Item) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, p := range f.parts {
		items = append(items, p.items...)
	}
	return items
}
