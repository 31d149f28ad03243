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

// walkEvery is how often the tags are read that have executing rows, a step of the index for each tag of the table. It
// is shorter than a tag counts as served after its last pop. So a lease that no walk sees ends while its node still
// serves the tag.
const walkEvery = 15 * time.Second

// leaseTags knows the tags that may have executing rows: what this node serves, what silent nodes have served, and
// where a walk has found some. So a table with many tags costs a node no more than a walk now and then.
type leaseTags struct {
	store  table.Bounded
	arm    *arm.Arm
	atOnce bool // walk at each read

	walk atomic.Pointer[leaseWalk] // nil before the first
}

// leaseWalk is what a walk has found.
type leaseWalk struct {
	began time.Time
	tags  []string
}

// read returns the tags, after a walk when that is due. Two passes may walk at once.
func (l *leaseTags) read(ctx context.Context) ([]string, error) {
	last := l.walk.Load()
	if last == nil || l.atOnce || time.Since(last.began) >= walkEvery {
		last = &leaseWalk{began: time.Now()}
		oldest, err := l.store.Oldest(ctx, row.Executing)
		if err != nil {
			return nil, err
		}
		for _, of := range oldest {
			last.tags = append(last.tags, of.Tag)
		}
		l.walk.Store(last)
	}
	silent := l.arm.Census.SilentTags(l.arm.Now().Add(-2 * walkEvery)) // what fell silent before was walked since
	return row.Distinct(slices.Concat(last.tags, l.arm.Tags.Served(), silent)), nil
}
