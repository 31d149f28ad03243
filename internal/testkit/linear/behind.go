package linear

import (
	"fmt"
	"strings"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// Where members of a cluster are behind one another, a read is of its node's own member. It may show a state that has
// been instead of the one that is, but one that somebody made before, and never an earlier version than its node was
// told of by returns before the call: a member does not forget. Writes and the table at the end are as strict as on one
// server.

// knower is a node that has been told of a task.
type knower struct {
	node string
	task int64
}

// learned is the version of which a node knows when an operation with an answer has returned.
func (o *op) learned() int64 {
	if o.sure || o.kind == journal.StoreRead {
		return o.after.version
	}
	return 0
}

// mayHaveSeen tells whether a read that may be behind can have seen what it says.
func (o *op) mayHaveSeen(now moment) bool {
	return o.after == now.state || now.status == unseen ||
		o.after.version >= o.floor && (o.after.version < now.dark || strings.Contains(now.past, o.after.name()))
}

// become is what is the case after an operation that is done.
func (m moment) become(o *op) moment {
	if o.behind {
		if m.status == unseen {
			m.dark = o.guard.version + 1
		}
		m.past += m.name()
	}
	m.state = o.after
	return m
}

// name is between bounds, so that no name is found in another one.
func (s state) name() string { return fmt.Sprintf("<%s %d %s>", s.status, s.version, s.executor) }
