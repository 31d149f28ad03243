// Package metrics says what a scheduler counts and measures. The root's package metrics does so, for Prometheus, so
// that only a program that uses it links it.
package metrics

import "time"

// Recorder counts and measures what happens. Its methods are named after that. They are safe for concurrent use.
type Recorder interface {
	// Saved counts n saves that got the same answer, one of the Save constants.
	Saved(result string, n int)
	// Claimed counts the rows that one claim won and lost.
	Claimed(won, lost int)
	// ClaimFailed counts the n rows of a claim whose statement ended in an error.
	ClaimFailed(n int)
	// Run counts an attempt that ended with one of the Run constants.
	Run(tag, result string)
	// Retried counts an attempt that will be followed by another one.
	Retried(tag string)
	// Rescued counts n leases that a rescue looked at, with one of the Rescue constants.
	Rescued(result string, n int)
	// Quarantined counts a task that was failed because it lost its executor too often.
	Quarantined()
	// IgnoredContext counts a processor that went on after its context had ended.
	IgnoredContext()
	// Purged counts n rows of a final status that were deleted.
	Purged(status string, n int)
	// DatabaseError counts an error of the class, as row.Class names it.
	DatabaseError(class string)
	// Late measures the start of a first attempt. The part of receivers has values only where one was waited for.
	Late(tag string, late Lateness)
	// Ran measures how long a processor took.
	Ran(tag string, took time.Duration)
	// SetBacklog says what is due and waits: of the tags that this process serves, and of those that none serves. None
	// means that it is not known.
	SetBacklog(all []Backlog)
	// Batch measures how many rows one statement of the operation carried.
	Batch(op string, n int)
	// SetHeap says how many tasks are armed.
	SetHeap(n int)
	// SetRunning says how many tasks this process has claimed and not yet finished.
	SetRunning(n int)
	// SetConcurrency says how many tasks may run at once.
	SetConcurrency(n int)
	// SetNodes says how many processes have a fresh heartbeat, this one and those that only save included.
	SetNodes(n int)
	// Woke counts a wake-up between processes, by one of the Wake constants.
	Woke(event string)
	// SetUnreachable says how many processes do not acknowledge the wake-ups of this one.
	SetUnreachable(n int)
	// Ticks counts n ticks of a schedule about which this process has written what became of them.
	Ticks(schedule, outcome string, n int)
	// SetSchedules says how the schedules of this node's share stand.
	SetSchedules(all []Schedule)
	// SetUnreadableSchedules says how many schedules this process leaves to others, because it cannot read them.
	SetUnreadableSchedules(n int)
	// SetPurgeLags says by status for how long the oldest finished task is past its retention. None means that it is
	// not known.
	SetPurgeLags(byStatus map[string]time.Duration)
	// SetClockHeld says whether no task starts, because the database's time is not known.
	SetClockHeld(held bool)
	// Clock says how far apart the bounds of the database's clock are, and how far this machine's wall clock is ahead.
	Clock(width, skew time.Duration)
}

// Lateness is how late a first attempt started: in total, and waiting for the timer, for the claim's statement, for a
// slot, and for a receiver.
type Lateness struct{ Total, Timer, Claim, Pool, Receiver time.Duration }

// Backlog is what is due and waits, of one tag.
type Backlog struct {
	Tag    string
	Due    int           // tasks, counted up to a bound
	Oldest time.Duration // since the due time of the oldest one; 0 without tasks
	Nodes  int           // live processes that serve the tag; 0 says that this one does not either
}

// Schedule is how a schedule stands.
type Schedule struct {
	Name         string
	Next         time.Time // the first tick that is not decided; zero: no tick follows
	LastSuccess  time.Time // tick of the last run that completed; the schedule's creation before the first
	Behind       int       // ticks that are due and not decided
	Unsuccessful int       // ticks that were due since the last success, without those since a run that is open
	Failures     int       // failed runs in a row
	Paused       bool
	PausedItself bool // because its runs failed
}

// What became of a save.
const (
	SaveStored    = "stored"
	SaveDuplicate = "duplicate" // an unfinished task carries the key
	SaveConflict  = "conflict"  // the id belongs to another task
	SaveRefused   = "refused"   // the input was wrong, or too many saves were waiting
	SaveUnknown   = "unknown"   // the outcome could not be learnt in time
	SaveFailed    = "failed"    // the database could not store it
)

// What became of an attempt.
const (
	RunCompleted   = "completed"
	RunRetried     = "retried"
	RunFailed      = "failed" // attempts used up, or permanent
	RunPanicked    = "panicked"
	RunCancelled   = "cancelled"
	RunSnoozed     = "snoozed"
	RunReleased    = "released"   // interrupted by a stop, no attempt spent
	RunLeaseLost   = "lease_lost" // the lease has passed on
	RunSkippedLate = "skipped_late"
	RunFailedLate  = "failed_late"
)

// What became of a wake-up between processes.
const (
	WakeSent     = "sent"
	WakeReceived = "received" // and acknowledged
	WakeRefused  = "refused"  // received, and not authentic
	WakeLost     = "lost"     // not acknowledged: the process counts as unreachable
)

// What a rescue did with a lease that was over.
const (
	RescueReturned    = "returned" // pending again
	RescueQuarantined = "quarantined"
)

// None records nothing.
var None Recorder = none{}

type none struct{}

func (none) Saved(string, int)                     {}
func (none) Claimed(int, int)                      {}
func (none) ClaimFailed(int)                       {}
func (none) Run(string, string)                    {}
func (none) Retried(string)                        {}
func (none) Rescued(string, int)                   {}
func (none) Quarantined()                          {}
func (none) IgnoredContext()                       {}
func (none) Purged(string, int)                    {}
func (none) DatabaseError(string)                  {}
func (none) Late(string, Lateness)                 {}
func (none) Ran(string, time.Duration)             {}
func (none) SetBacklog([]Backlog)                  {}
func (none) Batch(string, int)                     {}
func (none) SetHeap(int)                           {}
func (none) SetRunning(int)                        {}
func (none) SetConcurrency(int)                    {}
func (none) SetNodes(int)                          {}
func (none) Woke(string)                           {}
func (none) SetUnreachable(int)                    {}
func (none) Ticks(string, string, int)             {}
func (none) SetSchedules([]Schedule)               {}
func (none) SetUnreadableSchedules(int)            {}
func (none) SetPurgeLags(map[string]time.Duration) {}
func (none) SetClockHeld(bool)                     {}
func (none) Clock(time.Duration, time.Duration)    {}
