package engine

import (
	"time"

	"github.com/delaytask/delaytask/internal/clock"
	"github.com/delaytask/delaytask/internal/cluster"
)

// ids draws ids that carry the node's number for as long as its lease holds.
type ids struct {
	*cluster.IDs
	member *cluster.Member
}

func newIDs(member *cluster.Member, c *clock.Clock) *ids {
	number, _ := member.Number()
	now := func() time.Time {
		if t, ok := c.AtMost(); ok {
			return t.Std()
		}
		return time.Now()
	}
	return &ids{IDs: cluster.NewIDs(number, now), member: member}
}

// Next draws an id.
func (i *ids) Next() int64 {
	number, _ := i.member.Number()
	i.SetNode(number)
	return i.IDs.Next()
}
