package delaytask

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/processor"
)

// Option is a setting of one task, given when it is saved. Where an option is given twice, the last one counts; headers add up.
type Option = processor.Option

// LatePolicy says what happens to a task that is claimed later than its max lateness.
type LatePolicy = processor.LatePolicy

// What [WithMaxLateness] can ask for.
const (
	LateRun  = processor.LateRun  // run anyway
	LateSkip = processor.LateSkip // cancel it, with the reason
	LateFail = processor.LateFail // fail it, with the reason
)

// Tx is a caller's open transaction: *sql.Tx and *sqlx.Tx fit.
type Tx = processor.Tx

// WithTime makes the task due at t instead of after a delay; the delay must be 0 then. A time in the past runs now.
func WithTime(t time.Time) Option { return processor.WithTime(t) }

// WithKey names the task: while a task of the tag with this key is unfinished, saving another one is [ErrDuplicate]. Letter case
// counts. "" means no key.
func WithKey(key string) Option { return processor.WithKey(key) }

// WithID saves under an id from [NewID] or from an [OutcomeUnknownError]. Doing so twice stores the task once; with another
// content it is [ErrConflict].
func WithID(id int64) Option { return processor.WithID(id) }

// WithMaxAttempts bounds how often the task is tried. 0 means the default of the tag, then of the scheduler.
func WithMaxAttempts(n int) Option { return processor.WithMaxAttempts(n) }

// WithNoAttemptLimit tries the task until it succeeds or is cancelled.
func WithNoAttemptLimit() Option { return processor.WithNoAttemptLimit() }

// WithTTR is the task's lease: so long after a process has died, another takes its task. 0 means the default of the tag, then of
// the scheduler; less than 1 s is raised to 1 s; over 24 h is [ErrInvalidTTR].
func WithTTR(d time.Duration) Option { return processor.WithTTR(d) }

// WithPriority orders tasks that are ready at the same moment, larger first, −100 to 100. Default 0.
func WithPriority(p int) Option { return processor.WithPriority(p) }

// WithHeader adds one header, as [WithHeaders] does.
func WithHeader(name, value string) Option { return processor.WithHeader(name, value) }

// WithHeaders adds metadata that travels beside the body, such as a trace context: at most 16 KiB in all, as JSON.
func WithHeaders(headers map[string]string) Option { return processor.WithHeaders(headers) }

// WithMaxLateness says what happens when the task is claimed more than d after it was due. 0 means no limit.
func WithMaxLateness(d time.Duration, policy LatePolicy) Option {
	return processor.WithMaxLateness(d, policy)
}

// CompleteTx completes the running task inside a transaction of its processor on the same database: the task is completed if and
// only if the transaction commits, so that what the transaction changes happens exactly once. ctx is the one that the processor
// was called with.
//
// It returns [ErrLeaseLost] when somebody else holds the task by now; the transaction must be rolled back then. When the
// transaction is rolled back for any reason, the attempt has failed and the task is tried again.
func CompleteTx(ctx context.Context, tx Tx) error { return processor.CompleteTx(ctx, tx) }
