package find

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/engine/arm"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/row"
)

const (
	// walkEvery is how often the tags are read at least that have executing rows, a step of the index for each tag of
	// the table. It is shorter than a tag counts as served after its last pop. So a lease that no walk sees ends while
	// its node still serves the tag.
	walkEvery = 15 * time.Second
	// partOfAll is the part of the time of all nodes together, as a divisor, that reads past the rows of all take.
	partOfAll = 50
)

// leaseTags knows the tags that may have executing rows: what this node serves, what silent nodes have served, and
// where a walk has found some. So a table with thousands of tags costs a node no more than a walk now and then.
type leaseTags struct {
	store  table.Bounded
	arm    *arm.Arm
	atOnce bool // walk at each read

	walk atomic.Pointer[leaseWalk] // nil before the first
}

// leaseWalk is what a walk has found, and until when that will do.
type leaseWalk struct {
	tags []string
	next time.Time
}

// read returns the tags, after a walk when that is due. Two passes may walk at once.
func (l *leaseTags) read(ctx context.Context) ([]string, error) {
	last := l.walk.Load()
	if began := time.Now(); last == nil || l.atOnce || !began.Before(last.next) {
		oldest, err := l.store.Oldest(ctx, row.Executing)
		if err != nil {
			return nil, err
		}
		last = &leaseWalk{next: began.Add(min(walkEvery, partOfAll*time.Since(began)*l.arm.Census.Alive()))}
		for _, of := range oldest {
			last.tags = append(last.tags, of.Tag)
		}
		l.walk.Store(last)
	}
	silent := l.arm.Census.SilentTags(l.arm.Now().Add(-2 * walkEvery)) // what fell silent before was walked since
	return row.Distinct(slices.Concat(last.tags, l.arm.Tags.Served(), silent)), nil
}
