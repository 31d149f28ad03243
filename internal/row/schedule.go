package row

import (
	"time"

	"github.com/delaytask/delaytask"
)

// ScheduleState is the state of a schedule. The numbers are stored.
type ScheduleState uint8

const (
	ScheduleActive  ScheduleState = 0
	SchedulePaused  ScheduleState = 1
	ScheduleEnded   ScheduleState = 2 // no tick is left
	ScheduleRetired ScheduleState = 3 // its code declares it no more
	// ScheduleRetiredPaused is a retired schedule that is paused when it comes back.
	ScheduleRetiredPaused ScheduleState = 4
)

// Retired reports whether the code that declared the schedule does so no more.
func (s ScheduleState) Retired() bool { return s == ScheduleRetired || s == ScheduleRetiredPaused }

// Cause is why a run exists. The numbers are stored.
type Cause uint8

const (
	CauseTick     Cause = 0 // its tick was planted in time
	CauseLate     Cause = 1 // its tick was missed, or waited for the run before
	CauseManual   Cause = 2 // an operator triggered it
	CauseBackfill Cause = 3 // it belongs to a backfill
)

// Outcome is what became of a tick. The numbers are stored. A run that ended has the number of its [Status].
type Outcome uint8

const (
	OutcomeOpen      Outcome = 0 // its run is planted, or executing
	OutcomeCompleted Outcome = 1
	OutcomeFailed    Outcome = 2
	OutcomeCancelled Outcome = 4
	OutcomeSkipped   Outcome = 5 // another run was open, or an operator skipped it
	OutcomeMissed    Outcome = 6 // nothing decided it in time, and its policy drops it
	OutcomeUnknown   Outcome = 7 // its run was deleted before its end was seen
)

// Schedule is one row of delay_task_schedule.
type Schedule struct {
	ID      int64
	Name    string
	Version int64 // 0 when it is new, +1 at every change

	// What declared it. A schedule that was saved at runtime has no owner. Only a backfill has a parent: the name of
	// the schedule whose past ticks it runs.
	Owner    string
	Parent   string
	Revision Time  // of the declaring code
	Defined  int64 // the version that the last save of another definition has made

	// Its definition. Hash is of all of it, so that equal definitions are told by one comparison.
	Hash          [32]byte
	Grammar       int    // the version of the grammar that Spec needs
	Spec          string // in canonical form: see package spec
	Tag           string
	Body          []byte
	Headers       []byte // a JSON object, or nil (NULL)
	MaxAttempts   int    // 0 means no limit (NULL)
	TTR           time.Duration
	Priority      int
	Overlap       delaytask.Overlap
	Missed        delaytask.Missed
	MaxOpen       int
	StartWithin   time.Duration // 0: no bound
	Jitter        time.Duration
	PauseAfter    int // failed runs in a row; 0: never
	MaxRuns       int // 0 means no limit (NULL)
	KeepRuns      int // how many of its runs the history keeps
	RetryPastNext bool

	// Its progress.
	State       ScheduleState
	Reason      string // why it is paused, ended or retired
	Since       Time   // when it came into its state
	By          string // who has brought it there; "": a program, or itself
	ZoneData    string // version of the zone data that Next was computed by
	Next        Time   // the cursor: the first tick that is not decided; zero (NULL): none
	Look        Time   // when it next needs attention; zero (NULL): never
	Last        Time   // the last tick that was decided
	RunID       int64  // the task of the open run, or of the newest; 0 (NULL): none
	Runs        int64  // that count against MaxRuns
	MissedTicks int64  // ticks that did not run, over all time
	Failures    int    // failed runs in a row
	Success     Time   // tick of the last run that completed
	Created     Time   // written by the store
	Updated     Time   // written by the store
}

// Serial reports whether no two runs of the schedule may be open together.
func (s *Schedule) Serial() bool { return s.Overlap != delaytask.OverlapAllow }

// PausedItself reports whether failed runs have paused the schedule, and no person.
func (s *Schedule) PausedItself() bool {
	return s.State == SchedulePaused && s.By == "" && s.PauseAfter > 0 && s.Failures >= s.PauseAfter
}

// SetProgress gives the schedule the progress of another one.
func (s *Schedule) SetProgress(of *Schedule) {
	s.State, s.Reason, s.Since, s.By, s.ZoneData = of.State, of.Reason, of.Since, of.By, of.ZoneData
	s.Next, s.Look, s.Last, s.RunID = of.Next, of.Look, of.Last, of.RunID
	s.Runs, s.MissedTicks, s.Failures, s.Success = of.Runs, of.MissedTicks, of.Failures, of.Success
}

// ScheduleRun is one row of delay_task_schedule_run: what became of a tick, or of several in a row.
type ScheduleRun struct {
	ScheduleID int64
	Tick       Time
	Cause      Cause
	Until      Time // the last tick that the row is about; zero stores Tick
	Ticks      int  // how many these are; 0 stores 1
	Outcome    Outcome
	TaskID     int64  // 0 (NULL): there was no run
	Note       string // why
	Start      Time
	Finish     Time
}

// TickOf says which tick of which schedule a task is the run of.
type TickOf struct {
	Schedule    string
	Tick        Time
	Cause       Cause
	RetryBefore Time   // no attempt is to begin from then on; zero: no bound
	Previous    Time   // the tick before; zero: none
	Following   Time   // the tick after; zero: none
	Success     Time   // tick of the last run that completed, when this one was planted; zero: none
	Missed      int    // ticks just before this one that did not run
	Zone        string // of the schedule; "" is UTC
}

// Past reports whether an attempt at the moment would begin too late. It does not for a task that is not of a schedule.
func (t *TickOf) Past(moment Time) bool {
	return t != nil && !t.RetryBefore.IsZero() && moment >= t.RetryBefore
}

// End returns when a run that waits for its next attempt has ended: now, unless that attempt would begin too late.
func (t *TickOf) End(now Time) Time {
	if t.Past(now) {
		return t.RetryBefore - 1
	}
	return now
}

// Decision is all that changes of one schedule at once. Nothing of it applies unless the schedule is at
// Schedule.Version, every one of Changes applies, and no key or id of Insert, no name of a new schedule and no tick of
// New is taken.
type Decision struct {
	Write    ScheduleWrite
	Schedule Schedule      // with its new values
	New      []ScheduleRun // inserted
	Ended    []ScheduleRun // were open, and get outcome, note and both times
	Undone   []ScheduleRun // were open, and are deleted: their ticks are to be decided anew
	Forget   Time          // rows of the history from this tick on are deleted, whatever they say; zero: none
	Changes  []Change      // of the tasks of runs
	Insert   []Row         // tasks of runs, with their TickOf
}

// ScheduleWrite says which columns of a schedule a [Decision] writes.
type ScheduleWrite uint8

const (
	WriteProgress   ScheduleWrite = iota // the columns of its progress
	WriteDefinition                      // all but id and name
	WriteNew                             // all: there is no such schedule yet
	WriteDelete                          // none: it is deleted, and its runs of the history with it
)

// ScheduleFilter selects schedules. Zero fields do not filter.
type ScheduleFilter struct {
	Names     []string
	Owner     string
	Tag       string
	Prefix    string // of the name
	AfterName string // in the order of names, byte by byte
	Limit     int    // 1..1000
	NoBodies  bool   // leave them out
}
