package linear

import (
	"github.com/anishathalye/porcupine"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// The statuses that the model speaks of, as the journal says them, and two of its own.
const (
	pending   = "pending"
	executing = "executing"
	absent    = ""
	unseen    = "unseen" // nothing is known yet: somebody has made the task whom nobody recorded
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
	dark int64  // of lower versions than this one nobody recorded what they were
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
