package delaytask

import (
	"errors"
	"fmt"
)

// Errors about what a caller passed in. Nothing was stored or changed when one of them is returned.
var (
	// ErrInvalidTag is returned when a tag is not 1–128 bytes of A–Z a–z 0–9 . _ - : /
	ErrInvalidTag = errors.New("delaytask: invalid tag: want 1-128 bytes of A-Z a-z 0-9 . _ - : /")
	// ErrInvalidKey is returned when a key is longer than 255 characters (240 together with its app) or not valid
	// UTF-8. It is also returned for the reserved prefixes "s3:", "delaytask-app:" and "schedule:".
	ErrInvalidKey = errors.New("delaytask: invalid key: want valid UTF-8 of at most 255 characters, " +
		"not beginning with \"s3:\", \"delaytask-app:\" or \"schedule:\"")
	// ErrInvalidBody is returned when a body is not valid UTF-8 or cannot be marshalled to JSON.
	ErrInvalidBody = errors.New("delaytask: invalid body: want valid UTF-8, or a value that marshals to JSON")
	// ErrRedacted is returned by a service, and by its client, when a body or a header holds [delaytask-redacted]. The
	// service shows it instead of a secret, and stored it would replace the secret.
	ErrRedacted = errors.New("delaytask: a body or a header holds the mask of a secret that was hidden: send the " +
		"secret; raw=true and --raw show what is stored")
	// ErrBodyTooLarge is returned when a body is longer than the limit (default 1 MiB).
	ErrBodyTooLarge = errors.New("delaytask: body too large")
	// ErrInvalidDelay is returned when a delay is negative.
	ErrInvalidDelay = errors.New("delaytask: invalid delay: must not be negative")
	// ErrDelayTooLong is returned when a delay is over 290 years, or a due time would lie after the year 9998.
	ErrDelayTooLong = errors.New("delaytask: delay too long: want at most 105850d (290 years), " +
		"due before the year 9999")
	// ErrInvalidTime is returned when an absolute time is zero or lies before 1970-01-02.
	ErrInvalidTime = errors.New("delaytask: invalid time: must be set and lie in 1970-01-02 to 9998-12-31")
	// ErrInvalidID is returned when an id is not positive, or was not made by NewID.
	ErrInvalidID = errors.New("delaytask: invalid id: want one from NewID or from an OutcomeUnknownError")
	// ErrInvalidTTR is returned when a TTR is negative or longer than 24 hours. One below 1 s is raised to 1 s.
	ErrInvalidTTR = errors.New("delaytask: invalid TTR: must not be negative or longer than 24h")
	// ErrInvalidMaxAttempts is returned when max attempts is negative or over 1,000,000. 0 means the default.
	ErrInvalidMaxAttempts = errors.New("delaytask: invalid max attempts: want 0 (default) to 1000000")
	// ErrInvalidPriority is returned when a priority is outside −100…100.
	ErrInvalidPriority = errors.New("delaytask: invalid priority: want -100 to 100")
	// ErrInvalidHeaders is returned when headers are not valid UTF-8 or longer than 16 KiB as JSON.
	ErrInvalidHeaders = errors.New("delaytask: invalid headers: want valid UTF-8 of at most 16 KiB as JSON")
	// ErrInvalidOption is returned when another option is out of its range, or two options contradict each other.
	ErrInvalidOption = errors.New("delaytask: invalid option")
	// ErrInvalidCursor is returned when a filter's After is not the Next of a page of the same list.
	ErrInvalidCursor = errors.New("delaytask: invalid cursor: take Next from the page before, with the same order, " +
		"tag, status, key and app, or begin without one")
	// ErrInvalidScheduleName is returned when the name of a schedule is not 1–96 bytes of A–Z a–z 0–9 . _ - : /, or has
	// the part "/backfill/".
	ErrInvalidScheduleName = errors.New("delaytask: invalid name of a schedule: want 1-96 bytes of " +
		"A-Z a-z 0-9 . _ - : /, without \"/backfill/\"")
	// ErrBatchTooLarge is returned when a bulk save holds more tasks than the limit (10,000).
	ErrBatchTooLarge = errors.New("delaytask: batch too large: at most 10000 tasks in one call")
	// ErrNilContext is returned when the context is nil.
	ErrNilContext = errors.New("delaytask: context is nil")
	// ErrInvalidToken is returned when a token is not "<id>.<version>", two positive decimal numbers without sign or
	// leading zeros.
	ErrInvalidToken = errors.New("delaytask: invalid token: want \"<id>.<version>\", as the task was handed out with")
	// ErrNilTx is returned when the transaction is nil.
	ErrNilTx = errors.New("delaytask: transaction is nil")
	// ErrNoTransaction is returned when the value passed as a transaction commits each statement by itself: a pool, or
	// a connection without BEGIN.
	ErrNoTransaction = errors.New("delaytask: not inside of a transaction: pass the *sql.Tx, " +
		"or what your ORM hands to the function that it runs in a transaction, and no pool")
	// ErrNilProcessor is returned when a nil processor is registered.
	ErrNilProcessor = errors.New("delaytask: processor is nil")
	// ErrTagRegistered is returned when a tag already has a processor. A task goes to one processor. To run more tasks
	// of the tag at once, raise processor.Concurrency. For other work take another tag, or let one processor choose
	// by the task's body or headers. To replace a processor, unregister the tag first.
	ErrTagRegistered = errors.New("delaytask: tag already has a processor, and a task goes to one: " +
		"raise Concurrency to run more at once, take another tag for other work, or Unregister first to replace it")
)

// Errors about the state of a task, of the scheduler or of the database.
var (
	// ErrDuplicate is returned when an unfinished task of the tag carries the key. [DuplicateError] holds its id.
	ErrDuplicate = errors.New("delaytask: an unfinished task carries this key")
	// ErrConflict is returned when a save names an id that belongs to a task with another content. It is not about the
	// key, which [WithOnConflict] is for.
	ErrConflict = errors.New("delaytask: the id belongs to a task with another content")
	// ErrChunkRefused is returned for a task of a bulk save that is not stored because another one of its chunk was
	// refused. [ChunkError] names that one.
	ErrChunkRefused = errors.New("delaytask: not stored, because another task of its chunk was refused")
	// ErrOutcomeUnknown is returned when it is not known in time whether the task was stored. Saving again with the id
	// that [OutcomeUnknownError] holds is safe.
	ErrOutcomeUnknown = errors.New("delaytask: outcome unknown: the task may or may not be stored")
	// ErrNotStored is returned when the context of a save ended before anything that can be applied was sent to the
	// database. It wraps why, such as a refused connection. Nothing is stored, now or later: save again.
	ErrNotStored = errors.New("delaytask: not stored: save again")
	// ErrFileReplaced is returned when the SQLite file that this process has open was deleted, renamed or replaced. The
	// process saves and runs nothing more, because that would be lost. To keep the tasks of the old file put it back.
	// Then restart the process, which opens the file that is there.
	ErrFileReplaced = errors.New("delaytask: the SQLite file was deleted or replaced while this process had it open: " +
		"restart the process")
	// ErrLeaseLost is returned when the caller no longer holds the task: its lease ended and another process took it,
	// or it was cancelled. Nothing was changed.
	ErrLeaseLost = errors.New("delaytask: lease lost")
	// ErrNotFound is returned when no task has the id, or no unfinished task has the key.
	ErrNotFound = errors.New("delaytask: task not found")
	// ErrBroken is returned, with the reason, when the row of the task or schedule cannot be read: it was written by
	// hand. Nothing was changed.
	ErrBroken = errors.New("delaytask: the row cannot be read; repair it first")
	// ErrNotPending is returned when the call is for pending tasks only and the task is no longer pending.
	ErrNotPending = errors.New("delaytask: task is not pending")
	// ErrFinished is returned when the task has reached a final status that the call cannot change.
	ErrFinished = errors.New("delaytask: task is finished")
	// ErrNotFailed is returned by Retry when the task has not failed.
	ErrNotFailed = errors.New("delaytask: task has not failed")
	// ErrContended is returned when the task changed each time it was about to be changed, or when the key of a save
	// belonged to another task each time; trying again may succeed.
	// Inside a transaction it also means that the transaction reads an older state than it would change.
	ErrContended = errors.New("delaytask: the task keeps changing; try again")
	// ErrVersionChanged is returned by a change with [IfVersion] when the task has changed since it had that version.
	ErrVersionChanged = errors.New("delaytask: the task has changed since it had this version: " +
		"read it again, and change what it is now")
	// ErrScheduleNotFound is returned when there is no schedule of the name.
	ErrScheduleNotFound = errors.New("delaytask: there is no schedule of this name")
	// ErrScheduleOwned is returned when a schedule is saved or deleted that a program declares. Change the program. To
	// stop the schedule meanwhile, pause it.
	ErrScheduleOwned = errors.New("delaytask: a program declares this schedule: change it there, or pause the schedule")
	// ErrScheduleBusy is returned by TriggerSchedule while a run of the schedule executes.
	ErrScheduleBusy = errors.New("delaytask: a run of this schedule executes, and no other may be open beside it")
	// ErrScheduleState is returned when the state of a schedule does not allow what was asked for.
	ErrScheduleState = errors.New("delaytask: the state of the schedule does not allow this")
	// ErrScheduleExists is returned by a save with [WithIfNew] when a schedule has the name. Nothing was changed.
	ErrScheduleExists = errors.New("delaytask: there is a schedule of this name: choose another, or change that one")
	// ErrScheduleChanged is returned by a save with [WithIfVersion] when another definition was saved since the
	// schedule had that version, or when the schedule was deleted. Nothing was changed.
	ErrScheduleChanged = errors.New("delaytask: the schedule was saved or deleted since it had this version: " +
		"read it again, and change what it is now")
	// ErrInvalidRange is returned when a range without a tick is to be backfilled, with more than 100,000, or with
	// ticks that are to come.
	ErrInvalidRange = errors.New("delaytask: the range cannot be backfilled")
	// ErrNotRecorded is returned for a change through the service, the command or the dashboard when it could not be
	// recorded in the audit log. Nothing was changed.
	ErrNotRecorded = errors.New("delaytask: the change could not be recorded in the audit log, so nothing was " +
		"changed; try again")
	// ErrClosed is returned after Stop.
	ErrClosed = errors.New("delaytask: scheduler is stopped")
	// ErrNotStarted is returned by Pop before Start.
	ErrNotStarted = errors.New("delaytask: scheduler is not started")
	// ErrStarted is returned after Start by Use, and by DeclareSchedule and Every of a Kind.
	ErrStarted = errors.New("delaytask: started already; call Use, DeclareSchedule and Every before Start")
	// ErrGraceEnded is returned by Stop when processors were still running at the end of the grace; their tasks were
	// released, which is no fault.
	ErrGraceEnded = errors.New("delaytask: processors were still running at the end of the grace; " +
		"their tasks were released")
	// ErrResultsNotStored is returned by Stop when the results of tasks could not be stored in time: the database was
	// away, or another transaction has locked their rows. The log names the tasks. They run again when their leases are
	// over.
	ErrResultsNotStored = errors.New("delaytask: results could not be stored before the end of the stop; " +
		"their tasks run again when their leases are over")
	// ErrOverloaded is returned when the queue of saves is full: the database takes less than is offered, and nothing
	// was stored. A Pop returns it when more than 10,000 different tags were popped from one process within 30 s.
	ErrOverloaded = errors.New("delaytask: too much is asked for at once; slow down and try again")
)

// The causes that end a processor's context, as context.Cause returns them. Losing the lease is [ErrLeaseLost].
var (
	// ErrTimeout is the cause when the attempt's timeout has passed.
	ErrTimeout = errors.New("delaytask: the attempt's timeout has passed")
	// ErrCancelled is the cause when the task was cancelled while it ran.
	ErrCancelled = errors.New("delaytask: the task was cancelled")
	// ErrStopping is the cause when the scheduler stops and its grace has ended. The attempt is not counted.
	ErrStopping = errors.New("delaytask: the scheduler is stopping")
)

// DuplicateError says which unfinished task carries the key. It Is [ErrDuplicate].
type DuplicateError struct {
	ID int64 // the existing task; 0 when the caller's transaction does not see it yet
}

func (e *DuplicateError) Error() string { return fmt.Sprintf("%v (task %d)", ErrDuplicate, e.ID) }

func (e *DuplicateError) Unwrap() error { return ErrDuplicate }

// NotPendingError says which task carries the key of a save that was to reschedule it. It Is [ErrNotPending].
type NotPendingError struct{ ID int64 }

func (e *NotPendingError) Error() string {
	return fmt.Sprintf("%v: task %d carries the key and is executing", ErrNotPending, e.ID)
}

func (e *NotPendingError) Unwrap() error { return ErrNotPending }

// OutcomeUnknownError carries the id to save again with. It Is [ErrOutcomeUnknown].
type OutcomeUnknownError struct {
	ID  int64
	Err error // what ended the wait
}

func (e *OutcomeUnknownError) Error() string {
	return fmt.Sprintf("%v (save again with id %d): %v", ErrOutcomeUnknown, e.ID, e.Err)
}

func (e *OutcomeUnknownError) Unwrap() []error { return []error{ErrOutcomeUnknown, e.Err} }

// BatchError names the task of a bulk save that was refused. Nothing of the batch was stored.
type BatchError struct {
	Index int
	Err   error
}

func (e *BatchError) Error() string { return fmt.Sprintf("task %d of the batch: %v", e.Index, e.Err) }

func (e *BatchError) Unwrap() error { return e.Err }

// ChunkError names the task that made the database refuse a chunk, and another task with it. It Is [ErrChunkRefused].
type ChunkError struct {
	Index int   // of the refused task in the bulk save
	Err   error // why it was refused
}

func (e *ChunkError) Error() string {
	return fmt.Sprintf("%v: task %d: %v", ErrChunkRefused, e.Index, e.Err)
}

// Is matches ErrChunkRefused alone: the other task's error is not this task's.
func (e *ChunkError) Is(target error) bool { return target == ErrChunkRefused }
