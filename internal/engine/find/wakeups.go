package find

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/delaytask/delaytask/internal/cluster/wake"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/runqueue"
)

const (
	// wakePause is between two reads of what was announced.
	wakePause = 2 * time.Millisecond
	// wakeLater is how long rows wait for a read that are due much later.
	wakeLater = 25 * time.Millisecond
	wakeRows  = 200
	wakePages = 10
	// replicated is how long a member of a cluster may take to show a row that another member has committed. A read
	// that finds nothing is repeated after this time, and once more after five times as long.
	replicated = 5 * time.Millisecond
	rereads    = 2
	// wakeSpans bounds what waits for a read. Other rows are found later.
	wakeSpans = 10_000
	// wakeShares bounds the shares of a tag in one read. More than a few are of a forger.
	wakeShares = 16
)

// wakeups reads the rows that other processes tell of, and arms them. It reads at most once every wakePause, whatever
// arrives.
type wakeups struct {
	*deps
	wake chan struct{}

	mu     sync.Mutex
	soon   heard
	later  heard
	since  time.Time // when the first of later was told
	states []wake.Notice
}

// heard are notices that are to be read, merged, by what they are merged by.
type heard map[wake.Notice]toRead

type toRead struct {
	wake.Notice
	reads int // that found nothing
}

func newWakeups(c *deps) *wakeups {
	return &wakeups{deps: c, wake: make(chan struct{}, 1), soon: heard{}, later: heard{}}
}

// hear notes what another process tells. Notices of tags that are not open here are dropped.
func (t *wakeups) hear(notices []wake.Notice) {
	now := t.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range notices {
		switch {
		case n.State:
			if len(t.states) < wakeSpans {
				t.states = append(t.states, n)
			}
		case t.arm.Tags.Open(n.Tag):
			t.add(toRead{Notice: n}, now)
		}
	}
	table.Signal(t.wake)
}

// add sorts notices by whether their rows are due soon. The caller locks.
func (t *wakeups) add(n toRead, now row.Time) {
	n.From = max(n.From, now.Add(-runqueue.Overdue))
	n.To = min(n.To, now.Add(t.cfg.Window))
	if n.From > n.To {
		return
	}
	into := t.soon
	if n.From > now.Add(2*wakeLater) {
		into = t.later
		if len(into) == 0 {
			t.since = time.Now()
		}
	}
	into.add(n)
}

func (s heard) add(n toRead) {
	of := n.Notice
	of.From, of.To = 0, 0
	old, known := s[of]
	switch {
	case known:
		s[of] = toRead{old.Merge(n.Notice), min(old.reads, n.reads)}
	case len(s) < wakeSpans:
		s[of] = n
	}
}

func (t *wakeups) loop(ctx context.Context) {
	later := time.NewTimer(0)
	defer later.Stop()
	for {
		select {
		case <-t.wake:
		case <-later.C:
		case <-ctx.Done():
			return
		}
		if t.readStates(ctx) && !lifecycle.Sleep(ctx, wakePause) {
			return
		}
		turn, wait := t.turn()
		if len(turn) > 0 {
			if err := t.read(ctx, turn); err != nil && ctx.Err() == nil {
				t.Failed("reading what another process has told of", err)
			}
		}
		if wait > 0 {
			later.Reset(wait)
		}
		if !lifecycle.Sleep(ctx, wakePause) {
			return
		}
	}
}

// readStates reads which tags are paused, when another process has changed that. It reports whether it has read.
func (t *wakeups) readStates(ctx context.Context) bool {
	t.mu.Lock()
	states := t.states
	t.states = nil
	t.mu.Unlock()
	if len(states) == 0 {
		return false
	}
	ctx, cancel := t.CallIn(ctx)
	defer cancel()
	if err := t.arm.Tags.Read(ctx); err != nil {
		t.Failed("reading which tags are paused", err)
		return true
	}
	for i := range states {
		states[i].State = false
	}
	t.hear(states)
	return true
}

// turn takes out what is to be read now, and returns when the rest is.
func (t *wakeups) turn() (turn heard, wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	turn, t.soon = t.soon, heard{}
	if len(t.later) == 0 {
		return turn, 0
	}
	if wait = wakeLater - time.Since(t.since); wait > 0 {
		return turn, wait
	}
	if len(turn) > 0 && wait > -wakeLater/2 { // these must not wait for a long read
		return turn, wakePause
	}
	for _, n := range t.later {
		turn.add(n)
	}
	t.later = heard{}
	return turn, 0
}

// read arms the rows that this process was told of. The rows beyond its pages are found later.
func (t *wakeups) read(ctx context.Context, turn heard) error {
	w := row.Window{From: row.MaxTime, Limit: wakeRows}
	byTag := map[string][]toRead{}
	for _, n := range turn {
		if byTag[n.Tag] == nil {
			w.Tags = append(w.Tags, n.Tag)
		}
		if len(byTag[n.Tag]) < wakeShares {
			byTag[n.Tag] = append(byTag[n.Tag], n)
		}
		w.From, w.To = min(w.From, n.From), max(w.To, n.To+1)
	}
	slices.Sort(w.Tags)
	ctx, cancel := t.CallIn(ctx)
	defer cancel()
	found := map[string]bool{}
	for range wakePages {
		page, err := t.Due(ctx, w)
		if err != nil {
			return err
		}
		for _, d := range page {
			found[d.Tag] = true
			if t.arm.Tags.Awaited(d.Tag) || t.mine(d, byTag[d.Tag]) {
				t.runqueue.Arm(d, true)
			}
		}
		if len(page) < w.Limit || !lifecycle.Sleep(ctx, wakePause) {
			break
		}
		last := page[len(page)-1]
		w.From, w.AfterID = last.Due, last.ID
	}
	for _, n := range turn {
		if !found[n.Tag] && n.reads < rereads {
			t.readAgain(n)
		}
	}
	return nil
}

// readAgain looks once more for rows that were not there: this process may read from another server than the one that
// has committed them.
func (t *wakeups) readAgain(n toRead) {
	wait := replicated
	if n.reads > 0 {
		wait *= 5
	}
	n.reads++
	time.AfterFunc(wait, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.add(n, t.Now())
		table.Signal(t.wake)
	})
}

// mine reports whether this node arms the row: by its own view of the nodes, or by the view of the process that has
// told of it. The views may differ for a moment.
func (t *wakeups) mine(d row.Due, notices []toRead) bool {
	if t.arm.Mine(d.ID, d.Due, d.Tag) {
		return true
	}
	if t.arm.SavedAndServed(d) || !t.arm.Tags.Open(d.Tag) {
		return false
	}
	share := func(n toRead) bool { return n.Of > 0 && ids.OneOf(d.ID, n.Of) == n.Share }
	return slices.ContainsFunc(notices, share)
}
