package role

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/processor"
)

// nodeJournal is the journal of this process.
type nodeJournal struct {
	node string
	file *journal.File
	ops  atomic.Int64
}

// op returns a name that no other operation of the run has.
func (j *nodeJournal) op() string { return fmt.Sprintf("%s/%d", j.node, j.ops.Add(1)) }

// write returns when the events are on the disk.
func (j *nodeJournal) write(events ...journal.Event) {
	now := time.Now()
	for i := range events {
		e := &events[i]
		e.Node = j.node
		if e.At.IsZero() {
			e.At = now
		}
	}
	j.keep(j.file.Append(events...))
}

// record returns when the events outlive the process. They are too many to wait for the disk.
func (j *nodeJournal) record(events ...journal.Event) { j.keep(j.file.Write(events...)) }

// keep ends a process that cannot write its journal.
func (j *nodeJournal) keep(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, j.node+":", err)
		os.Exit(1)
	}
}

// saved is the class of what a save returned. An error that does not say unknown says that nothing was stored.
func saved(err error) journal.Class {
	switch {
	case err == nil:
		return journal.OK
	case errors.Is(err, delaytask.ErrOutcomeUnknown):
		return journal.Unknown
	case errors.Is(err, delaytask.ErrDuplicate):
		return journal.Duplicate
	}
	return journal.Refused
}

// changed is the class of what a cancel, a reschedule or a retry returned. Unlike a save, none of them resolves a lost
// reply.
func changed(err error) journal.Class {
	for _, is := range []struct {
		err   error
		class journal.Class
	}{
		{delaytask.ErrNotFound, journal.NotFound},
		{delaytask.ErrFinished, journal.WrongStatus},
		{delaytask.ErrNotPending, journal.WrongStatus},
		{delaytask.ErrNotFailed, journal.WrongStatus},
		{delaytask.ErrDuplicate, journal.Duplicate},
	} {
		if errors.Is(err, is.err) {
			return is.class
		}
	}
	if err != nil {
		return journal.Unknown
	}
	return journal.OK
}

func returned(err error) journal.Class {
	if err == nil {
		return journal.OK
	}
	if _, is := errors.AsType[*processor.SnoozeError](err); is {
		return journal.Snoozed
	}
	if _, is := errors.AsType[*processor.PermanentError](err); is {
		return journal.Permanent
	}
	if c := ended(err); c != journal.OK {
		return c
	}
	return journal.Failed
}

// ended is the class of what ended a processor's context, OK for any other cause.
func ended(cause error) journal.Class {
	switch {
	case errors.Is(cause, delaytask.ErrLeaseLost):
		return journal.LeaseLost
	case errors.Is(cause, delaytask.ErrStopping):
		return journal.Interrupted
	case errors.Is(cause, delaytask.ErrCancelled):
		return journal.Cancelled
	case errors.Is(cause, delaytask.ErrTimeout):
		return journal.Failed
	}
	return journal.OK
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
