package linear

import (
	"fmt"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// The statuses that the model speaks of, as the journal says them, and two of its own.
const (
	pending   = "pending"
	executing = "executing"
	absent    = ""
	unseen    = "unseen" // nothing is known yet: the insert of the task was not recorded
)

// state is what a task is, as far as its guards ask.
type state struct {
	status   string
	version  int64
	executor string
}

// moment is the state of the model.
type moment struct {
	state
	over bool   // what has not happened by now never does
	past string // states that have been, for reads that may be behind; empty where none may
	dark int64  // what the versions below this one were is not recorded
}

// model is a task under its guards. One whose insert is part of the history is absent at first.
func model(inserted bool) porcupine.Model {
	first := moment{state: state{status: unseen}}
	if inserted {
		first.status = absent
	}
	return porcupine.Model{
		Init: func() any { return first },
		Step: func(before, input, _ any) (bool, any) {
			fits, after := input.(*op).step(before.(moment))
			return fits, after
		},
	}
}

// step reports whether the operation may happen now, and what is the case after it.
func (o *op) step(now moment) (bool, moment) {
	if o.kind == theEnd {
		now.over = true
		return true, now
	}
	if o.open && now.over {
		return true, now
	}
	if o.kind == journal.StoreRead && o.behind {
		return o.mayHaveSeen(now), now
	}
	done := now.become(o)
	if o.kind == journal.StoreRead {
		return now.status == unseen || now.state == o.after, done
	}
	fits := now.status == o.guard.status && now.version == o.guard.version
	switch {
	case fits && o.sure && o.after.version != o.guard.version+o.steps():
		return false, now // it was told of a version that it has not made
	case fits:
		return true, done
	case now.status == unseen:
		if o.sure {
			return true, done
		}
		return !o.open, now
	default: // what was left out may be so, and needs an answer by then; what is open can wait
		return !o.sure && !o.open, now
	}
}

// steps is by how much the operation moves the version on.
func (o *op) steps() int64 {
	if o.kind == journal.StoreClaim || o.kind == journal.StoreChange {
		return 1
	}
	return 0
}

// Where members of a cluster are behind one another, a read goes to its node's own member. It may show a former state
// instead of the present one, but only a state that was recorded. It never shows an earlier version than its node knew
// from returns before the call: a member does not forget. Writes and the table at the end are as strict as on one
// server.

// witness is a node that knows a version of a task.
type witness struct {
	node string
	task int64
}

// learned is the version that a node knows once an operation with an answer has returned.
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
