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

// diary is a process's journal.
type diary struct {
	node string
	file *journal.File
	ops  atomic.Int64
}

// op is a name for an operation that no other one of the run has.
func (d *diary) op() string { return fmt.Sprintf("%s/%d", d.node, d.ops.Add(1)) }

// write returns when the events are on the disk.
func (d *diary) write(events ...journal.Event) {
	now := time.Now()
	for i := range events {
		e := &events[i]
		e.Node = d.node
		if e.At.IsZero() {
			e.At = now
		}
	}
	d.keep(d.file.Append(events...))
}

// record returns when the events outlive the process. There are many more of them than of those that wait for the disk.
func (d *diary) record(events ...journal.Event) { d.keep(d.file.Write(events...)) }

// keep ends a process that cannot keep its diary.
func (d *diary) keep(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, d.node+":", err)
		os.Exit(1)
	}
}

// saved is the class of what a save returned. What is not known to be unknown did not happen.
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

// changed is the class of what a cancel, a reschedule or a retry returned. Unlike a save, none of them finds out by
// itself what a lost reply said.
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

// returned is the class of what a processor returns.
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
	if c := told(err); c != journal.OK {
		return c
	}
	return journal.Failed
}

// told is the class of what ended a processor's context, OK when that is none.
func told(cause error) journal.Class {
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
