package processor

import (
	"context"
	"time"
)

// Scheduler is what the library and the client of the service have in common: *delaytask.Scheduler, which works on the
// program's own database, and *client.Client, which calls the service. A program that uses this interface moves from
// one to the other by changing one constructor.
//
// Only the library can save, change and complete tasks inside a transaction of the caller's database.
type Scheduler interface {
	Use(mw ...Middleware) error
	Register(tag string, p Processor, opts ...RegisterOption) error
	Unregister(tag string) bool
	Start(ctx context.Context) error
	Stop(ctx context.Context) error

	SaveDelayTask(ctx context.Context, tag string, body any, delay time.Duration, opts ...Option) (int64, error)
	SaveDelayTasks(ctx context.Context, items []Item) ([]SaveResult, error)

	Pop(ctx context.Context, tag string, opts ...PopOption) ([]*Popped, error)
	Leases
	FinishAll(ctx context.Context, tokens []Token) ([]error, error)

	Get(ctx context.Context, ref Ref) (TaskRow, error)
	Wait(ctx context.Context, id int64) (TaskRow, error)
	List(ctx context.Context, f Filter) (Page, error)
	Cancel(ctx context.Context, ref Ref, opts ...ChangeOption) (Status, error)
	Reschedule(ctx context.Context, ref Ref, delay time.Duration, opts ...ChangeOption) (Status, error)
	SetBody(ctx context.Context, ref Ref, body any, opts ...ChangeOption) (Status, error)
	Retry(ctx context.Context, ref Ref) error
	Explain(ctx context.Context, ref Ref) (Explanation, error)

	Pause(ctx context.Context, tag string) error
	Resume(ctx context.Context, tag string) error
	Tags(ctx context.Context) ([]TagState, error)
	Nodes(ctx context.Context) ([]Node, error)
	Stats(ctx context.Context) ([]TagStats, error)
	Failures(ctx context.Context, tag string) (Failures, error)
	Forecast(ctx context.Context, f ForecastFilter) (Forecast, error)
	Series(ctx context.Context, f SeriesFilter) (Series, error)
	Overview(ctx context.Context) (Overview, error)
	Audit(ctx context.Context, f AuditFilter) (AuditPage, error)

	Schedules
}

// Schedules is what can be done with schedules.
type Schedules interface {
	SaveSchedule(ctx context.Context, name string, when Spec, tag string, body any, opts ...Option) (Schedule, error)
	GetSchedule(ctx context.Context, name string) (Schedule, error)
	ListSchedules(ctx context.Context, f ScheduleFilter) (SchedulePage, error)
	DeleteSchedule(ctx context.Context, name string) error
	PauseSchedule(ctx context.Context, name, reason string) error
	ResumeSchedule(ctx context.Context, name string) error
	ResetSchedule(ctx context.Context, name string) error
	SkipTick(ctx context.Context, name string) (tick time.Time, err error)
	TriggerSchedule(ctx context.Context, name string, beside bool) (id int64, err error)
	Backfill(ctx context.Context, name string, from, to time.Time, atOnce int) (backfill string, err error)
	ScheduleTicks(ctx context.Context, name string, before time.Time, limit int) ([]ScheduleTick, error)
	ExplainSchedule(ctx context.Context, name string, tick time.Time) (ScheduleExplanation, error)
}

// Node is a process that shares the database.
type Node struct {
	Number  int // leased; part of the ids that it makes
	Name    string
	PID     int
	Address string
	Version string   // of delaytask
	Tags    []string // that it serves; none when it was not started
	Shares  []Share  // of each of these tags, in the same order
	Wake    string   // the UDP address where it is told of tasks that others save; "" for none
	// UnreachableFrom has the numbers of the nodes whose wake-ups it does not acknowledge.
	UnreachableFrom []int
	Leaving         bool // it is stopping
	Alive           bool // its heartbeat is at most 5 s old
	Heartbeat       time.Time
}

// Share is which part of a tag's new tasks a node has timers for. A node that leaves, or whose heartbeat is older than
// 2 s, has none: the others divide its share.
type Share struct {
	Tag      string
	Position int // from 1 to Total; 0 when the node has no share
	Total    int // how many nodes divide the tag's tasks
}

// TagState says whether the tasks of a tag run.
type TagState struct {
	Tag    string
	Served bool // a live node runs its tasks
	Paused bool
}

// TagStats is what there is of one tag.
type TagStats struct {
	Tag           string
	Counts        map[Status]int64 // statuses without tasks are left out
	Capped        []Status         // whose count is a lower bound: there are more
	OldestPending time.Time        // smallest due time of its pending tasks; zero when there are none
	Lateness      Lateness         // of the newest completed tasks, at most 1,000
	Served        bool             // a live node runs its tasks
	Paused        bool
}

// Lateness is how late the first attempts of completed tasks started. All is zero when there are none.
type Lateness struct {
	Samples            int // completed tasks that it was taken of
	P50, P95, P99, Max time.Duration
}

// Reason says, for programs, why a task is not running now.
type Reason string

// The reasons that an explanation gives.
const (
	ReasonNotDue      Reason = "not_due"
	ReasonRetry       Reason = "waiting_for_retry" // an attempt failed and the next one is not due
	ReasonPaused      Reason = "paused"
	ReasonUnserved    Reason = "unserved"   // no live node has a processor for the tag
	ReasonLocked      Reason = "locked"     // another transaction holds the row
	ReasonWaiting     Reason = "waiting"    // due, and waiting for a free slot
	ReasonLeased      Reason = "leased"     // it is executing
	ReasonLeaseOver   Reason = "lease_over" // its executor is gone; a rescue will end the lease
	ReasonFinished    Reason = "finished"
	ReasonQuarantined Reason = "quarantined" // failed because it lost its executor too often
	ReasonBroken      Reason = "broken"      // its row cannot be read
)

// Explanation says why a task has not run, or what has become of it.
type Explanation struct {
	Task   TaskRow // without its body
	Reason Reason
	Text   string // a sentence for people
}
