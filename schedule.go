package delaytask

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Overlap says what happens to a tick that falls due while its schedule has as many open runs as it allows. The service
// uses the same texts.
type Overlap string

// The values of [WithOverlap]. A run is open from when it is planted until it ends.
const (
	OverlapSkip     Overlap = "skip"      // the tick does not run; the default
	OverlapQueueOne Overlap = "queue_one" // one run follows the open one, for the latest tick
	OverlapReplace  Overlap = "replace"   // the open run is cancelled, and the tick runs
	OverlapAllow    Overlap = "allow"     // the tick runs beside the open ones, up to WithMaxOpen
)

// Missed says what happens to ticks that no process has decided in time, as after an outage. The service uses the same
// texts.
type Missed string

// The values of [WithMissed].
const (
	MissedOnce Missed = "once" // the latest runs now; the default
	MissedSkip Missed = "skip" // the latest runs if it is at most a minute late; no run begins later
	MissedAll  Missed = "all"  // each runs, the oldest first; of more than 1,000 the newest 1,000
)

// ScheduleSettings is what the options of a schedule set.
type ScheduleSettings struct {
	Overlap       Overlap
	MaxOpen       int
	Missed        Missed
	StartWithin   time.Duration
	Jitter        time.Duration
	PauseAfter    int
	MaxRuns       int
	KeepRuns      int
	RetryPastNext bool

	IfVersion *int64 // nil: whatever is stored
	IfNew     bool
}

const (
	// DefaultMaxOpen is how many runs of a schedule with [OverlapAllow] may be open where no option says it.
	DefaultMaxOpen = 100
	// DefaultKeepRuns is how many rows the history of a schedule keeps where no option says it.
	DefaultKeepRuns = 100

	mostOpen     = 10_000
	mostKept     = 100_000
	mostCounted  = math.MaxInt32 // what a column of the table can tell
	longestDrift = 24 * time.Hour
)

// scheduleOption changes a setting of a schedule.
func scheduleOption(change func(*ScheduleSettings) error) Option {
	return func(s *Save) error {
		if s.Schedule == nil {
			s.Schedule = &ScheduleSettings{}
		}
		return change(s.Schedule)
	}
}

// WithOverlap says what happens to a tick that falls due while a run of its schedule is open. Under all policies but
// [OverlapAllow] no two runs are open together, and no attempt of a run begins after the next tick: see
// [WithRetryPastNext]. The default is [OverlapSkip]. It returns [ErrInvalidOption] for an unknown policy. The option is
// for schedules.
func WithOverlap(policy Overlap) Option {
	return scheduleOption(func(s *ScheduleSettings) error {
		all := []Overlap{OverlapSkip, OverlapQueueOne, OverlapReplace, OverlapAllow}
		if !slices.Contains(all, policy) {
			return fmt.Errorf("%w: overlap %.40q: want one of %q", ErrInvalidOption, policy, all)
		}
		s.Overlap = policy
		return nil
	})
}

// WithMaxOpen bounds how many runs of a schedule with [OverlapAllow] may be open at once, 1 to 10,000. The default is
// 100. It returns [ErrInvalidOption]. The option is for schedules.
func WithMaxOpen(n int) Option {
	return scheduleOption(func(s *ScheduleSettings) error {
		if n < 1 || n > mostOpen {
			return fmt.Errorf("%w: max open %d: want 1 to %d", ErrInvalidOption, n, mostOpen)
		}
		s.MaxOpen = n
		return nil
	})
}

// WithMissed says what happens to ticks that no process has decided in time, and to a planted run that an outage has
// kept from beginning. The default is [MissedOnce]. It returns [ErrInvalidOption] for an unknown policy. The option is
// for schedules.
func WithMissed(policy Missed) Option {
	return scheduleOption(func(s *ScheduleSettings) error {
		all := []Missed{MissedOnce, MissedSkip, MissedAll}
		if !slices.Contains(all, policy) {
			return fmt.Errorf("%w: missed %.40q: want one of %q", ErrInvalidOption, policy, all)
		}
		s.Missed = policy
		return nil
	})
}

// WithStartWithin drops ticks that did not start within d of their time: a nightly job does not run at noon after an
// outage. A claim that came too late is no start, also after a crash. The default is no bound. It returns
// [ErrInvalidOption] when d is below 1 s or over 290 years. The option is for schedules.
func WithStartWithin(d time.Duration) Option {
	return scheduleOption(func(s *ScheduleSettings) error {
		if d < time.Second || d > MaxDelay {
			return fmt.Errorf("%w: start within %v: want 1s to 105850d (290 years)", ErrInvalidOption, d)
		}
		s.StartWithin = roundUp(d)
		return nil
	})
}

// WithJitter starts the runs up to d after their ticks, so that not all schedules run at minute 0. The name of the
// schedule alone decides by how much, so the distances between runs stay. The default is 0. It returns
// [ErrInvalidOption] when d is negative or over 24 h. The option is for schedules.
func WithJitter(d time.Duration) Option {
	return scheduleOption(func(s *ScheduleSettings) error {
		if d < 0 || d > longestDrift {
			return fmt.Errorf("%w: jitter %v: want 0 to 24h", ErrInvalidOption, d)
		}
		s.Jitter = roundUp(d)
		return nil
	})
}

// WithPauseAfter pauses the schedule when n runs in a row have failed for good. The reason holds the last error. A
// cancelled run counts as neither. The default, 0, never pauses. It returns [ErrInvalidOption] when n is negative or
// over 2,147,483,647. The option is for schedules.
func WithPauseAfter(n int) Option {
	return scheduleOption(func(s *ScheduleSettings) error {
		if n < 0 || n > mostCounted {
			return fmt.Errorf("%w: pause after %d: want 0 to %d", ErrInvalidOption, n, mostCounted)
		}
		s.PauseAfter = n
		return nil
	})
}

// WithMaxRuns ends the schedule after n runs. Ticks that do not run count as none. The default, 0, is no bound. It
// returns [ErrInvalidOption] when n is negative or over 2,147,483,647. The option is for schedules.
func WithMaxRuns(n int) Option {
	return scheduleOption(func(s *ScheduleSettings) error {
		if n < 0 || n > mostCounted {
			return fmt.Errorf("%w: max runs %d: want 0 to %d", ErrInvalidOption, n, mostCounted)
		}
		s.MaxRuns = n
		return nil
	})
}

// WithKeepRuns sets how many rows the history of the schedule keeps, 1 to 100,000, beside the rows of ticks to come.
// The default is 100. It returns [ErrInvalidOption]. The option is for schedules.
func WithKeepRuns(n int) Option {
	return scheduleOption(func(s *ScheduleSettings) error {
		if n < 1 || n > mostKept {
			return fmt.Errorf("%w: keep runs %d: want 1 to %d", ErrInvalidOption, n, mostKept)
		}
		s.KeepRuns = n
		return nil
	})
}

// WithRetryPastNext lets attempts of a run begin after the next tick is due. Without it a run fails then, because an
// hour of backoff would silence a schedule for each minute. It is meaningless for [OverlapAllow], which has no such
// bound. The option is for schedules.
func WithRetryPastNext() Option {
	return scheduleOption(func(s *ScheduleSettings) error {
		s.RetryPastNext = true
		return nil
	})
}

// WithIfVersion makes the save of a schedule conditional: it is refused with [ErrScheduleChanged] when another
// definition was saved since the schedule had the version, or when it was deleted. So an edit does not undo one that it
// has not seen. Ticks and pauses make versions too, but are no other definition. The version is Schedule.Version of a
// schedule that was read. The definition that is stored already is not refused. It returns [ErrInvalidOption] for a
// negative version. The option is for saves of schedules.
func WithIfVersion(version int64) Option {
	return scheduleOption(func(s *ScheduleSettings) error {
		if version < 0 {
			return fmt.Errorf("%w: version %d: want Schedule.Version, which is not negative", ErrInvalidOption, version)
		}
		s.IfVersion = &version
		return nil
	})
}

// WithIfNew lets a save of a schedule store a new one only. It is refused with [ErrScheduleExists] when a schedule has
// the name, whatever its definition. The option is for saves of schedules.
func WithIfNew() Option {
	return scheduleOption(func(s *ScheduleSettings) error {
		s.IfNew = true
		return nil
	})
}

// maxScheduleName leaves room for what is added to the name of a backfill.
const maxScheduleName = 96

// ValidScheduleName reports whether a schedule may have the name: 1 to 96 bytes of A–Z a–z 0–9 . _ - : / without the
// part "/backfill/".
func ValidScheduleName(name string) bool {
	return len(name) <= maxScheduleName && ValidTag(name) && !strings.Contains(name, "/backfill/")
}

// ScheduledRun says which tick of which schedule a task is the run of. Times are in the zone of the schedule, or in UTC
// where this machine does not know it, and zero where not set.
//
// Work on what has come since LastSuccess, up to Tick, leaves no hole after ticks that did not run.
type ScheduledRun struct {
	Name        string    // of the schedule
	Tick        time.Time // the instant that the definition names; Task.Expected is later by the jitter
	Cause       Cause     // why there is this run
	Previous    time.Time // the tick before
	Next        time.Time // the tick after
	LastSuccess time.Time // tick of the last run that completed, when this one was planted
	Missed      int       // ticks since the run before that did not run
}

// Cause is why a run of a schedule exists.
type Cause string

// The causes of runs.
const (
	CauseTick     Cause = "tick"     // its time has come
	CauseLate     Cause = "late"     // its time had passed, or it waited for the run before
	CauseManual   Cause = "manual"   // an operator triggered it
	CauseBackfill Cause = "backfill" // it belongs to a backfill
)

// ScheduleState is the state of a schedule.
type ScheduleState string

// The states of schedules.
const (
	ScheduleActive  ScheduleState = "active"  // its ticks run
	SchedulePaused  ScheduleState = "paused"  // no tick runs, and none is missed
	ScheduleEnded   ScheduleState = "ended"   // no tick is left
	ScheduleRetired ScheduleState = "retired" // no program declares it any more; deleted after 30 days
)

// Schedule is a schedule as it is stored. Times are in UTC, and zero where not set.
type Schedule struct {
	ID       int64
	Name     string
	Parent   string    // of a backfill: the schedule whose ticks it runs
	Owner    string    // of one that a program declares: its set
	Revision time.Time // of the program that declared it
	Version  int64     // grows with each change

	Spec          Spec // in canonical form
	Tag           string
	Body          []byte
	Headers       map[string]string
	MaxAttempts   int // 0: no limit
	TTR           time.Duration
	Priority      int
	Overlap       Overlap
	MaxOpen       int
	Missed        Missed
	StartWithin   time.Duration // 0: no bound
	Jitter        time.Duration
	PauseAfter    int // 0: never
	MaxRuns       int // 0: no bound
	KeepRuns      int
	RetryPastNext bool

	State       ScheduleState
	Reason      string    // why it is paused, ended or retired
	Since       time.Time // when it came into its state
	By          string    // who has brought it there through the service, the command or the dashboard
	NextTick    time.Time // the first tick that is not decided
	NextDue     time.Time // when that tick is due: later by the jitter
	LastTick    time.Time // the last tick that was decided
	RunID       int64     // the task of its newest run; 0: none
	Runs        int64     // that count against MaxRuns
	Skipped     int64     // ticks since the newest run that did not run
	Failures    int       // failed runs in a row
	LastSuccess time.Time // tick of the last run that completed
	Created     time.Time
	Updated     time.Time
}

// Outcome is what became of a tick.
type Outcome string

// The outcomes of ticks.
const (
	OutcomeOpen      Outcome = "open"      // its run is planted, or executing
	OutcomeCompleted Outcome = "completed" // its run was
	OutcomeFailed    Outcome = "failed"    // its run did
	OutcomeCancelled Outcome = "cancelled" // its run was
	OutcomeSkipped   Outcome = "skipped"   // another run was open, or an operator skipped it
	OutcomeMissed    Outcome = "missed"    // no process decided it in time, and the policy drops it
	OutcomeUnknown   Outcome = "unknown"   // its task was deleted before its end was seen
)

// ScheduleTick is what became of a tick, or of several in a row. Times are in UTC, and zero where not set.
type ScheduleTick struct {
	Tick    time.Time
	Until   time.Time // the last tick that it is about
	Ticks   int       // how many these are
	Cause   Cause
	Outcome Outcome
	TaskID  int64  // 0: there was no run
	Note    string // why
	Start   time.Time
	Finish  time.Time
}

// ScheduleFilter selects schedules. Fields that are left out do not filter.
type ScheduleFilter struct {
	Prefix    string // of the name
	Owner     string
	AfterName string // the name of the last one on the page before
	Limit     int    // 1 to 1,000; 0 means 100
	NoBodies  bool   // leave the bodies out: they may be large
}

// SchedulePage is a page of schedules, by name.
type SchedulePage struct {
	Schedules []Schedule
	Next      string // AfterName of the next page; "" on the last one
}
