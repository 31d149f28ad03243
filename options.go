package delaytask

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/processor"
)

// Option is a setting of one task, given when it is saved. If an option is given twice, the last one counts. Headers
// add up.
type Option = processor.Option

// Kind is one kind of task: a tag, the type of the body, and default options. It lets the compiler check both sides,
// what saves a task and what runs it. Make it with [NewKind].
type Kind[T any] = processor.Kind[T]

// NewKind returns the kind of task with the tag. Its tasks are saved with the default options, which the options of a
// single save follow. Bodies are stored as JSON, but a string, a []byte and a json.RawMessage are stored as they are.
//
// It panics like regexp.MustCompile when the tag is invalid, when an option is, and for [WithKey], [WithID] and
// [WithTime], which belong to one task each.
func NewKind[T any](tag string, defaults ...Option) Kind[T] {
	return processor.NewKind[T](tag, defaults...)
}

// LatePolicy decides about a task that is claimed later than its max lateness.
type LatePolicy = processor.LatePolicy

// The policies of [WithMaxLateness] for a task that is claimed too late.
const (
	LateRun  = processor.LateRun  // run anyway
	LateSkip = processor.LateSkip // cancel it, with the reason
	LateFail = processor.LateFail // fail it, with the reason
)

// ConflictMode says what a save does when an unfinished task carries its key. The texts are those of the service.
type ConflictMode = processor.ConflictMode

// The modes of [WithOnConflict]. Times are due times.
const (
	KeepExisting       = processor.KeepExisting       // leave the existing task as it is; the default
	ReplaceTime        = processor.ReplaceTime        // give it the time of this save
	ReplaceTimeAndBody = processor.ReplaceTimeAndBody // give it the time and the body of this save
	OnlyEarlier        = processor.OnlyEarlier        // give it the time of this save if that is earlier
	OnlyLater          = processor.OnlyLater          // give it the time of this save if that is later
)

// Tx is a caller's open transaction: *sql.Tx and *sqlx.Tx fit. It must be one on the same database.
type Tx = processor.Tx

// WithTime makes the task due at t instead of after a delay; the delay must be 0 then ([ErrInvalidOption]). A time in
// the past runs now. It returns [ErrInvalidTime] when t is zero or before 1970-01-02, and [ErrDelayTooLong] after the
// year 9998.
func WithTime(t time.Time) Option { return processor.WithTime(t) }

// WithKey names the task: while a task of the tag with this key is unfinished, saving another one returns
// [ErrDuplicate], or does what [WithOnConflict] says. Keys are case-sensitive. "" means no key. A key belongs to the
// application of [WithApp]. It returns [ErrInvalidKey].
func WithKey(key string) Option { return processor.WithKey(key) }

// WithApp sets the application that the task belongs to. The service calls back only receivers of this application. The
// task's key is unique within the tag and the application: another application may use the same key. "" means no
// application. It returns [ErrInvalidOption] when app is not 1–128 bytes of A–Z a–z 0–9 . _ - : /
func WithApp(app string) Option { return processor.WithApp(app) }

// WithID saves under an id from [NewID] or from an [OutcomeUnknownError]. Saving twice under an id stores the task
// once. With another content the second save returns [ErrConflict]. WithID returns [ErrInvalidID]. A save under an id
// may repeat an earlier one. While the outcome of that is not known, errors of the database, of ctx and of a stop are
// returned as [ErrOutcomeUnknown] too.
func WithID(id int64) Option { return processor.WithID(id) }

// WithMaxAttempts bounds how often the task is tried. 0 means the default of the tag, then of the scheduler (20). It
// returns [ErrInvalidMaxAttempts] when n is negative or over 1,000,000.
func WithMaxAttempts(n int) Option { return processor.WithMaxAttempts(n) }

// WithNoAttemptLimit tries the task until it succeeds or is cancelled. It contradicts [WithMaxAttempts]
// ([ErrInvalidOption]).
func WithNoAttemptLimit() Option { return processor.WithNoAttemptLimit() }

// WithTTR sets the task's lease: how long after the death of a process another process takes its task. 0 means the
// default of the tag, then of the scheduler (15 s); less than 1 s is raised to 1 s. It returns [ErrInvalidTTR] when d
// is negative or over 24 h.
func WithTTR(d time.Duration) Option { return processor.WithTTR(d) }

// WithPriority orders tasks that are ready at the same moment, larger first. Default 0. It returns [ErrInvalidPriority]
// outside −100…100.
func WithPriority(p int) Option { return processor.WithPriority(p) }

// WithHeader adds one header, as [WithHeaders] does.
func WithHeader(name, value string) Option { return processor.WithHeader(name, value) }

// WithHeaders adds metadata that travels beside the body, such as a trace context. A name that was given before is
// replaced. All headers together may take 16 KiB as JSON. It returns [ErrInvalidHeaders].
func WithHeaders(headers map[string]string) Option { return processor.WithHeaders(headers) }

// WithMaxLateness sets what happens when the task is claimed more than d late. Until its first start, lateness counts
// from Task.Expected, and later from the due time of the attempt. 0 means no limit. It returns [ErrInvalidOption] when
// d is negative or over 290 years, or the policy is unknown.
func WithMaxLateness(d time.Duration, policy LatePolicy) Option {
	return processor.WithMaxLateness(d, policy)
}

// WithOnConflict says what the save does when an unfinished task of the tag carries the key of [WithKey]. The save
// returns the id of that task. Each change adds 1 to its version. A body that differs gives back its attempts and sets
// its crash count to 0. All else of the existing task stays.
//
//	the save meets        it returns
//	no unfinished task    nil: a new task is stored
//	a pending task        nil when the mode has given it the time, else ErrDuplicate
//	an executing task     ErrNotPending, with the id in a [NotPendingError]; nothing is changed
//
// A task is executing while a processor or a caller of Pop has it, and some 100 ms before it is due. [ErrContended]
// says that the existing tasks changed or ended each time; save again.
//
// Saving again after [ErrOutcomeUnknown] stores the task once more, and it may run again, when the existing task that
// took the first save over has ended meanwhile.
//
// WithOnConflict returns [ErrInvalidOption] for an unknown mode, and when the save has no key.
func WithOnConflict(mode ConflictMode) Option { return processor.WithOnConflict(mode) }

// WithMaxWait bounds how long saves with [WithOnConflict] put a task off: none moves it to a later time than d after it
// was first saved. A new task is due by then too. 0 means no bound. It returns [ErrInvalidOption] when d is negative or
// over 290 years, and without a mode that changes the existing task.
func WithMaxWait(d time.Duration) Option { return processor.WithMaxWait(d) }

// CompleteTx completes the running task inside the processor's own transaction on the same database: the task is
// completed if and only if the transaction commits, so that its effects there happen exactly once. ctx is the
// processor's context or derived from it. Afterwards only the row decides. If the processor returns and the row is not
// completed, because the transaction was rolled back, the attempt has failed.
//
// It returns [ErrNilContext], [ErrNilTx], [ErrNoTransaction], [ErrNoLease], or [ErrLeaseLost] after which the
// transaction must be rolled back.
func CompleteTx(ctx context.Context, tx Tx) error { return processor.CompleteTx(ctx, tx) }
