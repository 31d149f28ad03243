package scanner

import (
	"context"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

const (
	// overdue is how late a pending row must be before its timer counts as lost.
	overdue = time.Second
	// compensateReaders bounds the reads that run at a time, whatever the number of tags.
	compensateReaders = 4
	// pagesPerTurn is after how many pages a long backlog is read from its beginning again: rows whose transaction
	// committed late, or whose claim failed, lie behind the reader.
	pagesPerTurn = 32
)

// Compensate finds pending rows that no node runs although they are overdue.
//
// A pass costs one small read when there is no backlog. When a page does not hold all rows, every tag is read by
// itself, page by page, as fast as Offer takes them. Those reads may outlast the pass. Later passes leave the tag out
// until it is done. So neither a tag with a million overdue rows nor one whose tasks are slow holds up another.
type Compensate struct {
	Due   func(ctx context.Context, w row.Window) ([]row.Due, error)
	Adopt func(ctx context.Context, rows []row.Ref) error // gives rows of a plain INSERT the due time that they lack
	Tags  func() []string                                 // served here and not paused
	// Turn returns in which turn this node takes a row: 0 for one of its share, which it takes at once.
	Turn func(id int64, tag string) int
	// Share selects the rows of the first so many turns for a read; not some: all rows.
	Share func(tag string, turns int) (s row.Share, some bool)
	Now   func() (now row.Time, ok bool) // the database's clock; not ok holds the pass back
	// Offer hands over rows of one tag, the longest overdue first, and blocks until there is room for them. An error
	// ends the tag's turn.
	Offer func(ctx context.Context, tag string, page []row.Due) error
	// Waiting returns how many rows that were handed over wait to be claimed.
	Waiting func(tag string) int
	Crowd   func() time.Duration // how many times longer than one node many pause: each reads past the rows of all
	Turns   int                  // of which rows are read, where that is not all
	Page    int                  // rows in one read
	Log     *slog.Logger

	once    sync.Once
	readers chan struct{}

	stuck stuck

	mu      sync.Mutex
	turns   sync.WaitGroup
	running map[string]bool // tags that are read by themselves
	again   map[string]bool // running tags that a pass has met meanwhile
}

// Pass looks once for overdue rows. It hands rows over in the background; the context must live as long as that.
func (c *Compensate) Pass(ctx context.Context) error {
	c.once.Do(func() {
		c.readers = make(chan struct{}, compensateReaders)
		c.running, c.again = make(map[string]bool), make(map[string]bool)
	})
	now, ok := c.Now()
	tags := c.idleTags()
	if !ok || len(tags) == 0 {
		return nil
	}
	page, err := c.read(ctx, row.Window{Tags: tags, To: now.Add(-overdue), Limit: c.Page})
	if err != nil {
		return err
	}
	found := byTag(page)
	for _, tag := range tags {
		rows := found[tag]
		stuck := c.stuck.of(tag, rows, c.isOthers, stuckAfter<<(c.Turns-1))
		work := func() error { return c.offerPage(ctx, tag, rows) }
		switch {
		case len(page) == c.Page: // one tag may have filled it and hide the others, so each is asked for itself
			work = func() error { return c.drain(ctx, tag, new(shareFilter)) }
		case len(rows) == 0:
			continue
		}
		c.turn(ctx, tag, func() error {
			if err := c.help(ctx, tag, stuck); err != nil {
				return err
			}
			return work()
		})
	}
	return nil
}

// isOthers reports whether the nodes that take a row in one of the first turns are others.
func (c *Compensate) isOthers(id int64, tag string) bool { return c.Turn(id, tag) >= c.Turns }

// help hands over rows that their nodes do not take, unless this one has enough to do.
func (c *Compensate) help(ctx context.Context, tag string, rows []row.Due) error {
	if len(rows) == 0 || c.Waiting(tag) > 0 {
		return nil
	}
	return c.Offer(ctx, tag, rows)
}

// Wait returns when everything that was found has been handed over, or its context has ended. No Pass may begin
// meanwhile.
func (c *Compensate) Wait() { c.turns.Wait() }

// idleTags returns the tags that no turn is working on. The others are read once more when theirs ends: the rows that a
// pass was asked for may lie behind their reader.
func (c *Compensate) idleTags() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var tags []string
	for _, tag := range c.Tags() {
		if c.running[tag] {
			c.again[tag] = true
		} else {
			tags = append(tags, tag)
		}
	}
	return tags
}

// turn works on one tag in the background.
func (c *Compensate) turn(ctx context.Context, tag string, work func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running[tag] = true
	c.turns.Go(func() {
		ended := false
		defer func() {
			if v := recover(); v != nil {
				c.Log.Error("a scan panicked", "tag", tag, "panic", v, "stack", string(debug.Stack()))
			}
			if !ended {
				c.end(tag)
			}
		}()
		err := work()
		for err == nil {
			if ended = !c.asked(tag); ended {
				return
			}
			err = c.drain(ctx, tag, new(shareFilter))
		}
		if !row.Ended(err) {
			c.Log.Warn("could not hand over overdue tasks; the next scan tries again", "tag", tag, "err", err)
		}
	})
}

// asked reports whether a pass has met the tag's turn, and forgets it. If none has, the turn has ended, and the next
// pass begins another.
func (c *Compensate) asked(tag string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.again[tag]
	delete(c.again, tag)
	if !asked {
		delete(c.running, tag)
	}
	return asked
}

func (c *Compensate) end(tag string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, tag)
	delete(c.again, tag)
}

// offerPage hands over the only page of a tag.
func (c *Compensate) offerPage(ctx context.Context, tag string, rows []row.Due) error {
	s := new(shareFilter)
	if err := c.offerMine(ctx, tag, rows, s); err != nil {
		return err
	}
	if again, err := c.next(ctx, tag, s, false); err != nil || !again {
		return err
	}
	return c.drain(ctx, tag, s)
}

// drain hands over one tag's overdue rows until no row is left, the tag is paused, or the clock is lost.
func (c *Compensate) drain(ctx context.Context, tag string, s *shareFilter) error {
	for {
		now, ok := c.Now()
		if !ok {
			return nil
		}
		more, err := c.drainTurn(ctx, row.Window{Tags: []string{tag}, To: now.Add(-overdue), Limit: c.Page}, s)
		if err != nil {
			return err
		}
		if again, err := c.next(ctx, tag, s, more); err != nil || !again {
			return err
		}
	}
}

// next reports whether there has to be another turn. It first waits for the other nodes to take their rows, and until
// half of what this node has read of its own is claimed: a read would find it again.
func (c *Compensate) next(ctx context.Context, tag string, s *shareFilter, more bool) (again bool, err error) {
	own := s.own
	again, wait := s.next(more)
	if wait > 0 {
		wait = max(wait, soon*c.Crowd(), min(readRest*s.took, overdue*c.Crowd()))
		err = sleep(ctx, wait)
		for waited := wait; err == nil && again && waited < mostWait && c.Waiting(tag) > own/2; waited += wait {
			err = sleep(ctx, wait)
		}
	}
	return again && err == nil, err
}

// drainTurn reads the rows of this node's share, and all rows when it has come to the end of these, or when a while has
// passed. It reports whether there may be more to read.
func (c *Compensate) drainTurn(ctx context.Context, w row.Window, s *shareFilter) (more bool, err error) {
	tag := w.Tags[0]
	if share, some := c.Share(tag, 1); some && !s.helps {
		own := w
		own.Share = &share
		if more, err = c.readOn(ctx, own, s); err != nil || !s.looks() {
			return more, err
		}
	}
	if share, some := c.Share(tag, c.Turns); some {
		w.Share = &share
	}
	return c.readOn(ctx, w, s)
}

// readOn reads on through the window, so that no row is read twice.
func (c *Compensate) readOn(ctx context.Context, w row.Window, s *shareFilter) (more bool, err error) {
	for range pagesPerTurn {
		if !slices.Contains(c.Tags(), w.Tags[0]) {
			s.forget()
			return false, nil
		}
		began := time.Now()
		page, err := c.read(ctx, w)
		s.took = time.Since(began)
		if err != nil || len(page) == 0 {
			return false, err
		}
		if err := c.offerMine(ctx, w.Tags[0], page, s); err != nil {
			return false, err
		}
		if len(page) < w.Limit {
			return false, nil
		}
		last := page[len(page)-1]
		if last.Due.IsZero() {
			w.AfterID = last.ID // a whole page has just got its due times, or is locked: read on behind it
			continue
		}
		w.From, w.AfterID = last.Due, last.ID
	}
	return true, nil
}

func (c *Compensate) read(ctx context.Context, w row.Window) ([]row.Due, error) {
	select {
	case c.readers <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-c.readers }()
	return c.Due(ctx, w)
}

// offerMine offers the rows of one tag that are this node's to run. Rows without a due time may not be due: they get
// one, and a later read finds them by it.
func (c *Compensate) offerMine(ctx context.Context, tag string, rows []row.Due, s *shareFilter) error {
	var lacking []row.Ref
	for len(rows) > 0 && rows[0].Due.IsZero() {
		lacking = append(lacking, row.Ref{ID: rows[0].ID, Version: rows[0].Version})
		rows = rows[1:]
	}
	if len(lacking) > 0 {
		if err := c.Adopt(ctx, lacking); err != nil {
			return err
		}
	}
	rows = s.filter(rows, c.Turn)
	if len(rows) == 0 {
		return nil
	}
	return c.Offer(ctx, tag, rows)
}

func byTag(rows []row.Due) map[string][]row.Due {
	tags := make(map[string][]row.Due)
	for _, r := range rows {
		tags[r.Tag] = append(tags[r.Tag], r)
	}
	return tags
}

// spared is how many rows of others a helping node passes over: the oldest ones, which the others have in memory by
// now.
const spared = 2000

// stuckAfter is how long a node with rows of its own leaves a row to the others, where it is the first of its
// successors.
const stuckAfter = 3 * overdue

// readRest is how many times longer than a read the pause after a turn is at least, if there is one: a database that is
// overloaded is read less often.
const readRest = 4

// mostWait bounds how long rows that were handed over keep their reader waiting, as long as from one pass to the next.
const mostWait = 5 * time.Second

// soon is how long rows that were handed over take to be claimed. Until then they would be read again.
const soon = 100 * time.Millisecond

// shareFilter separates the overdue rows that this node runs from those that it leaves to others. If all nodes claimed
// what all of them read, most claims would be in vain. A node's own share comes first. A row of others that is still
// there a moment later is run by the next node in the row's order. A node without rows of its own left helps with what
// the others will not reach soon.
type shareFilter struct {
	helps bool           // it has no rows of its own left
	left  map[int64]left // rows that were left to others in the last turn; no more than are spared

	own    int            // rows in this turn
	others int            // rows that were left to others
	leave  map[int64]left // the first of those

	took time.Duration // by the last read

	alone  bool      // this turn has read no rows of others
	looked time.Time // when a turn last did
}

// looks reports whether the turn reads the rows of others, too.
func (s *shareFilter) looks() bool {
	now := time.Now()
	s.alone = s.own > 0 && now.Sub(s.looked) < overdue
	if !s.alone {
		s.looked = now
	}
	return !s.alone
}

// left is a row that is left to others.
type left struct {
	version int64
	since   time.Time
}

// filter returns the rows that this node runs.
func (s *shareFilter) filter(rows []row.Due, turn func(id int64, tag string) int) []row.Due {
	now := time.Now()
	var taken []row.Due
	for _, d := range rows {
		turn := turn(d.ID, d.Tag)
		if turn == 0 {
			s.own++
			taken = append(taken, d)
			continue
		}
		l, waited := s.left[d.ID]
		if !waited || l.version != d.Version {
			l, waited = left{d.Version, now}, false
		}
		if waited && now.Sub(l.since) >= s.leaves(turn) || turn == 1 && s.helps && s.others >= spared {
			taken = append(taken, d)
			continue
		}
		s.others++
		if s.leave == nil {
			s.leave = make(map[int64]left)
		}
		if len(s.leave) < spared {
			s.leave[d.ID] = l
		}
	}
	return taken
}

// leaves is how long a row is left to those that take it in earlier turns. The time doubles from turn to turn, so that
// few nodes take the same rows, also where all rows wait for long.
func (s *shareFilter) leaves(turn int) time.Duration {
	least := stuckAfter
	if s.helps {
		least = overdue
	}
	return least << (turn - 1)
}

// next begins another turn, unless nothing is left. If the last turn has met only rows of others, the next one comes
// after the time that they get, and helps with what is still there. If it has met rows of its own and came to the end,
// the next one comes soon: more of its own may be overdue by then. In the middle of the rows it comes at once.
func (s *shareFilter) next(more bool) (again bool, wait time.Duration) {
	last := *s
	*s = shareFilter{looked: last.looked, took: last.took}
	switch {
	case last.alone:
		s.left = last.left
		if more {
			return true, 0
		}
		return true, soon
	case last.others > 0 && last.own == 0:
		s.helps, s.left = true, last.leave
		return true, overdue
	case last.others > 0 && !more:
		s.left = last.leave
		return true, soon
	}
	return more, 0
}

func (s *shareFilter) forget() { *s = shareFilter{} }
