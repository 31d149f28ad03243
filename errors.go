package delaytask

import (
	"errors"

	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/processor"
)

// ErrInvalidConfig is returned by Open and New when a field of [Config] is out of range.
var ErrInvalidConfig = errors.New("delaytask: invalid config")

// ErrUnknownDriver is returned by Open and New for a SQLite database when the program does not import package sqlite,
// which links the driver.
var ErrUnknownDriver = sqlstore.ErrUnknownDriver

// ErrNotReady is returned by Ready, with the reason.
var ErrNotReady = errors.New("delaytask: not ready")

// Errors about what a caller passed in. Nothing was stored or changed when one of them is returned. Each is documented
// in package processor.
var (
	ErrInvalidTag         = processor.ErrInvalidTag
	ErrInvalidKey         = processor.ErrInvalidKey
	ErrInvalidBody        = processor.ErrInvalidBody
	ErrRedacted           = processor.ErrRedacted
	ErrBodyTooLarge       = processor.ErrBodyTooLarge
	ErrInvalidDelay       = processor.ErrInvalidDelay
	ErrDelayTooLong       = processor.ErrDelayTooLong
	ErrInvalidTime        = processor.ErrInvalidTime
	ErrInvalidID          = processor.ErrInvalidID
	ErrInvalidTTR         = processor.ErrInvalidTTR
	ErrInvalidMaxAttempts = processor.ErrInvalidMaxAttempts
	ErrInvalidPriority    = processor.ErrInvalidPriority
	ErrInvalidHeaders     = processor.ErrInvalidHeaders
	ErrInvalidCursor      = processor.ErrInvalidCursor
	ErrInvalidOption      = processor.ErrInvalidOption
	ErrInvalidSpec        = processor.ErrInvalidSpec

	ErrInvalidScheduleName = processor.ErrInvalidScheduleName

	ErrInvalidRange  = processor.ErrInvalidRange
	ErrBatchTooLarge = processor.ErrBatchTooLarge
	ErrInvalidToken  = processor.ErrInvalidToken
	ErrNilContext    = processor.ErrNilContext
	ErrNilTx         = processor.ErrNilTx
	ErrNoTransaction = processor.ErrNoTransaction
	ErrNilProcessor  = processor.ErrNilProcessor
	ErrTagRegistered = processor.ErrTagRegistered
)

// Errors about the state of a task, of the scheduler or of the database. Each is documented in package processor.
var (
	ErrDuplicate      = processor.ErrDuplicate
	ErrConflict       = processor.ErrConflict
	ErrChunkRefused   = processor.ErrChunkRefused
	ErrOutcomeUnknown = processor.ErrOutcomeUnknown
	ErrLeaseLost      = processor.ErrLeaseLost
	ErrNotFound       = processor.ErrNotFound
	ErrBroken         = processor.ErrBroken
	ErrNotPending     = processor.ErrNotPending
	ErrFinished       = processor.ErrFinished
	ErrNotFailed      = processor.ErrNotFailed
	ErrContended      = processor.ErrContended
	ErrVersionChanged = processor.ErrVersionChanged
	ErrClosed         = processor.ErrClosed

	ErrScheduleNotFound = processor.ErrScheduleNotFound
	ErrScheduleOwned    = processor.ErrScheduleOwned
	ErrScheduleBusy     = processor.ErrScheduleBusy
	ErrScheduleState    = processor.ErrScheduleState
	ErrNoRevision       = processor.ErrNoRevision

	ErrNotRecorded = processor.ErrNotRecorded

	ErrNotStarted = processor.ErrNotStarted
	ErrStarted    = processor.ErrStarted
	ErrOverloaded = processor.ErrOverloaded

	// ErrNoLease is returned by [CompleteTx] when the context is not one that a processor was called with.
	ErrNoLease = processor.ErrNoLease

	// ErrGraceEnded is returned by Stop when processors were still running at the end of the grace; their tasks were
	// released, which is no fault.
	ErrGraceEnded = processor.ErrGraceEnded
)

// Causes with which a processor's context ends, as context.Cause returns them. Losing the lease is [ErrLeaseLost].
var (
	// ErrTimeout is the cause when the attempt's timeout has passed.
	ErrTimeout = processor.ErrTimeout
	// ErrCancelled is the cause when the task was cancelled while it ran.
	ErrCancelled = processor.ErrCancelled
	// ErrStopping is the cause when the scheduler stops and its grace has ended. The attempt is not counted.
	ErrStopping = processor.ErrStopping
)

// DuplicateError says which unfinished task carries the key. It Is [ErrDuplicate].
type DuplicateError = processor.DuplicateError

// NotPendingError says which task carries the key of a save that was to reschedule it. It Is [ErrNotPending].
type NotPendingError = processor.NotPendingError

// OutcomeUnknownError carries the id to save again with. It Is [ErrOutcomeUnknown].
type OutcomeUnknownError = processor.OutcomeUnknownError

// ChunkError names the task for which the chunk of another one was refused. It Is [ErrChunkRefused].
type ChunkError = processor.ChunkError

// SpecError says where a [Spec] is wrong, and why. It Is [ErrInvalidSpec].
type SpecError = processor.SpecError

// BatchError names the task of a bulk save that was refused. Nothing of the batch was stored.
type BatchError = processor.BatchError
