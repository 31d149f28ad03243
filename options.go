package delaytask

import (
	"fmt"
	"maps"
	"time"
)

// Option is a setting of one task, given when it is saved. If an option is given twice, the last one counts. Headers
// add up.
type Option func(*Save) error

// LatePolicy decides about a task that is claimed later than its max lateness. The numbers are stored.
type LatePolicy uint8

// The policies of [WithMaxLateness] for a task that is claimed too late.
const (
	LateRun  LatePolicy = 0 // run anyway
	LateSkip LatePolicy = 1 // cancel it, with the reason
	LateFail LatePolicy = 2 // fail it, with the reason
)

// WithTime makes the task due at t instead of after a delay; the delay must be 0 then ([ErrInvalidOption]). A time in
// the past runs now. It returns [ErrInvalidTime] when t is zero or before 1970-01-02, and [ErrDelayTooLong] after the
// year 9998.
func WithTime(t time.Time) Option {
	return func(s *Save) error {
		s.At = t.UTC() // which also drops the monotonic reading: it means nothing on another machine
		return checkTime(t)
	}
}

// WithKey names the task: while a task of the tag with this key is unfinished, saving another one returns
// [ErrDuplicate], or does what [WithOnConflict] says. Keys are case-sensitive. "" means no key. A key belongs to the
// application of [WithApp]. It returns [ErrInvalidKey].
func WithKey(key string) Option {
	return func(s *Save) error {
		s.Key = key
		return checkKey(key)
	}
}

// WithID saves under an id from NewID or from an [OutcomeUnknownError]. Saving twice under an id stores the task once.
// With another content the second save returns [ErrConflict]. WithID returns [ErrInvalidID]. A save under an id may
// repeat an earlier one. While the outcome of that is not known, errors of the database, of the context and of a stop
// are returned as [ErrOutcomeUnknown] too. Such an error Is [ErrNotStored] as well when the repetition stored nothing.
func WithID(id int64) Option {
	return func(s *Save) error {
		if id <= 0 {
			return fmt.Errorf("%w: got %d", ErrInvalidID, id)
		}
		s.ID = id
		return nil
	}
}

// WithMaxAttempts bounds how often the task is tried. 0 means the default of the tag, then of the scheduler (20). It
// returns [ErrInvalidMaxAttempts] when n is negative or over 1,000,000.
func WithMaxAttempts(n int) Option {
	return func(s *Save) error {
		s.MaxAttempts = n
		return checkMaxAttempts(n)
	}
}

// WithNoAttemptLimit tries the task until it succeeds or is cancelled. It contradicts [WithMaxAttempts]
// ([ErrInvalidOption]).
func WithNoAttemptLimit() Option {
	return func(s *Save) error {
		s.Unlimited = true
		return nil
	}
}

// WithTTR sets the task's lease: how long after the death of a process another process takes its task. 0 means the
// default of the tag, then of the scheduler (15 s); less than 1 s is raised to 1 s. It returns [ErrInvalidTTR] when d
// is negative or over 24 h.
func WithTTR(d time.Duration) Option {
	return func(s *Save) error {
		ttr, err := checkTTR(d)
		s.TTR = ttr
		return err
	}
}

// WithPriority orders tasks that are ready at the same moment, larger first. Default 0. It returns [ErrInvalidPriority]
// outside −100…100.
func WithPriority(p int) Option {
	return func(s *Save) error {
		if p < -maxPriority || p > maxPriority {
			return fmt.Errorf("%w: got %d", ErrInvalidPriority, p)
		}
		s.Priority = p
		return nil
	}
}

// WithHeader adds one header, as [WithHeaders] does.
func WithHeader(name, value string) Option {
	return WithHeaders(map[string]string{name: value})
}

// WithHeaders adds metadata that travels beside the body, such as a trace context. A name that was given before is
// replaced. All headers together may take 16 KiB as JSON. It returns [ErrInvalidHeaders].
func WithHeaders(headers map[string]string) Option {
	return func(s *Save) error {
		if s.Headers == nil && len(headers) > 0 {
			s.Headers = make(map[string]string, len(headers))
		}
		maps.Copy(s.Headers, headers)
		return nil
	}
}

// WithMaxLateness sets what happens when the task is claimed more than d late. Until its first start, lateness counts
// from Task.Expected, and later from the due time of the attempt. 0 means no limit. It returns [ErrInvalidOption] when
// d is negative or over 290 years, or the policy is unknown.
func WithMaxLateness(d time.Duration, policy LatePolicy) Option {
	return func(s *Save) error {
		if d < 0 || d > MaxDelay {
			return fmt.Errorf("%w: max lateness %v: want 0 to 105850d (290 years)", ErrInvalidOption, d)
		}
		if policy > LateFail {
			return fmt.Errorf("%w: late policy %d is unknown", ErrInvalidOption, policy)
		}
		s.MaxLate, s.LatePolicy = roundUp(d), policy
		return nil
	}
}

// ConflictMode says what a save does when an unfinished task carries its key. The service uses the same texts.
type ConflictMode string

// The modes of [WithOnConflict]. Times are due times.
const (
	KeepExisting       ConflictMode = "keep_existing"         // leave the existing task as it is; the default
	ReplaceTime        ConflictMode = "replace_time"          // give it the time of this save
	ReplaceTimeAndBody ConflictMode = "replace_time_and_body" // give it the time and the body of this save
	OnlyEarlier        ConflictMode = "only_earlier"          // give it the time of this save if that is earlier
	OnlyLater          ConflictMode = "only_later"            // give it the time of this save if that is later
)

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
func WithOnConflict(mode ConflictMode) Option {
	return func(s *Save) error {
		switch mode {
		case KeepExisting:
			mode = ""
		case ReplaceTime, ReplaceTimeAndBody, OnlyEarlier, OnlyLater:
		default:
			return fmt.Errorf("%w: conflict mode %.40q: want %s, %s, %s, %s or %s", ErrInvalidOption, mode,
				KeepExisting, ReplaceTime, ReplaceTimeAndBody, OnlyEarlier, OnlyLater)
		}
		s.OnConflict = mode
		return nil
	}
}

// WithMaxWait bounds how long saves with [WithOnConflict] put a task off: none moves it to a later time than d after it
// was first saved. A new task is due by then too. 0 means no bound. It returns [ErrInvalidOption] when d is negative or
// over 290 years, and without a mode that changes the existing task.
func WithMaxWait(d time.Duration) Option {
	return func(s *Save) error {
		if d < 0 || d > MaxDelay {
			return fmt.Errorf("%w: max wait %v: want 0 to 105850d (290 years)", ErrInvalidOption, d)
		}
		s.MaxWait = roundUp(d)
		return nil
	}
}

// AppHeader is the header that holds the application of a task. [WithApp] sets it.
const AppHeader = "delaytask-app"

// WithApp sets the application that the task belongs to. The service calls back only receivers of this application. The
// task's key is unique within the tag and the application: another application may use the same key. "" means no
// application. It returns [ErrInvalidOption] when app is not 1–128 bytes of A–Z a–z 0–9 . _ - : /
func WithApp(app string) Option {
	return func(s *Save) error {
		if app == "" {
			delete(s.Headers, AppHeader)
			return nil
		}
		if err := checkApp(app); err != nil {
			return err
		}
		return WithHeader(AppHeader, app)(s)
	}
}

// App is the application that the task belongs to, "" when it has none.
func (t *Task) App() string { return t.Headers[AppHeader] }

// App is the application that the task belongs to, "" when it has none.
func (t *TaskRow) App() string { return t.Headers[AppHeader] }

func checkApp(app string) error {
	if !ValidTag(app) {
		return fmt.Errorf("%w: app %.140q: want 1-128 bytes of A-Z a-z 0-9 . _ - : /", ErrInvalidOption, app)
	}
	return nil
}
