package delaytask

import (
	"time"

	"github.com/delaytask/delaytask/internal/ids"
)

// drawn makes ids outside of any scheduler. They carry a node number that no node ever leases, so they never count as
// saved by a live node.
var drawn = ids.NewSource(ids.RandomNode(), time.Now)

// NewID returns a new id to save with, for a caller that needs it before the save or saves again under it: see
// [WithID].
func NewID() int64 { return drawn.Next() }
