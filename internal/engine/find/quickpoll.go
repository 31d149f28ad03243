package find

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle"
	"github.com/delaytask/delaytask/internal/row"
)

// quickPoll reads often what falls due of a tag whose rows the overdue poll has found although other processes save
// them: wake-ups are off, or do not arrive. It ends when such rows stop coming. Its cost is bounded, for this process
// by the time that its reads take, and for the database by how many all nodes send.
type quickPoll struct {
	*deps
	wake chan struct{}
	took atomic.Int64 // nanoseconds of one read, smoothed

	mu    sync.Mutex
	until map[string]time.Time // by tag
}

const (
	quickFor   = 3 * time.Second // after the last row of another process
	quickPause = 10 * time.Millisecond
	// quickShare is how many times longer than a read the pause after it is: reads take a twentieth of the time.
	quickShare = 19
	// quickPeers is the pause of each node. Together they read at most 200 times a second.
	quickPeers = 5 * time.Millisecond
	quickTags  = 32
)

func newQuickPoll(c *deps) *quickPoll {
	return &quickPoll{deps: c, wake: make(chan struct{}, 1), until: map[string]time.Time{}}
}

// note looks at rows that were found late. A tag with rows of a process that does not serve it is read often from now
// on.
func (q *quickPoll) note(rows []row.Due) {
	view := q.arm.View()
	if view == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, d := range rows {
		_, known := q.until[d.Tag]
		if (known || len(q.until) < quickTags) && !view.SaverServes(d.ID, d.Tag) {
			q.until[d.Tag] = time.Now().Add(quickFor)
			table.Signal(q.wake)
		}
	}
}

// tags returns the tags that are read often.
func (q *quickPoll) tags() []string {
	q.mu.Lock()
	defer q.mu.Unlock()
	maps.DeleteFunc(q.until, func(_ string, until time.Time) bool { return time.Now().After(until) })
	return slices.Sorted(maps.Keys(q.until))
}

func (q *quickPoll) loop(ctx context.Context) {
	for {
		select {
		case <-q.wake:
		case <-ctx.Done():
			return
		}
		for tags := q.tags(); len(tags) > 0; tags = q.tags() {
			if _, err := q.read(ctx, tags, q.pause()+arm.MaxAhead); err != nil && ctx.Err() == nil {
				q.Failed("polling often for overdue tasks", err)
				lifecycle.Sleep(ctx, lifecycle.Backoff(6))
			}
			if !lifecycle.Sleep(ctx, q.pause()) {
				return
			}
		}
	}
}

func (q *quickPoll) pause() time.Duration {
	peers := 1
	if view := q.arm.View(); view != nil {
		peers = view.Peers()
	}
	return max(quickPause, quickShare*q.cost(), time.Duration(peers)*quickPeers)
}

// cost is how long one read takes.
func (q *quickPoll) cost() time.Duration { return time.Duration(q.took.Load()) }

// read arms what is due, or falls due in a while, and returns how many rows it found.
func (q *quickPoll) read(ctx context.Context, tags []string, ahead time.Duration) (found int, err error) {
	tags = q.runqueue.WithTaker(tags)
	now, anchored := q.Bounds.AtLeast()
	if len(tags) == 0 || !anchored {
		return 0, nil
	}
	ctx, cancel := q.CallIn(ctx)
	defer cancel()
	began := time.Now()
	page, err := q.Due(ctx, row.Window{
		Tags: tags, From: now.Add(-arm.LeftToOwner), To: now.Add(ahead), Limit: pollRows,
	})
	if err != nil {
		return 0, err
	}
	q.took.Store(int64((3*q.cost() + time.Since(began)) / 4))
	page = slices.DeleteFunc(page, func(d row.Due) bool {
		return !q.arm.Mine(d.ID, d.Due, d.Tag) && !q.arm.Tags.Awaited(d.Tag)
	})
	for _, d := range page {
		q.runqueue.Arm(d, true)
	}
	q.note(page)
	return len(page), nil
}
