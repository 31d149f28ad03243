package delaytask

import (
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
)

// drawn makes ids outside of any scheduler. They carry a node number that no node ever leases, so they never count as saved by a
// live node.
var drawn = cluster.NewIDs(cluster.RandomNode(), time.Now)

// NewID draws an id to save with, for a caller who wants to know it before the save, or to save again under the same one: see
// [WithID].
func NewID() int64 { return drawn.Next() }
