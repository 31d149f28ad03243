package report

import (
	"time"

	"github.com/delaytask/delaytask"
)

// Overview says what needs attention now, and how every tag stands. All processes of a database see the same, except
// for what only the process that reads can tell: its clock, and its processors that hang.
type Overview struct {
	At  time.Time     // when it was read, by the database's clock
	Age time.Duration // how long ago that was; over 5 s only where Stale says why
	// Stale says why the last reading has failed, so that this one is older. "" when it has not.
	Stale OverviewTrouble
	// Missing has the parts that this reading lacks, in the order of [OverviewPart]s. Their fields are zero.
	Missing []MissingPart

	Attention []Finding // the most urgent first; none means that nothing was found
	Totals    OverviewTotals
	Tags      []TagOverview // sorted: those that have tasks, are served or are paused

	// Series has results and lateness of the last hour by the minute, of all these tags together, and the marks.
	Series Series
	// Due is how many tasks fall due in each minute of the next hour, of all these tags together. It and Due of a tag
	// are up to 30 s old.
	Due      []DueTasks
	DueStart time.Time // when the first of these minutes begins

	HourStart time.Time // when the first step of TagOverview.LastHour begins

	// MoreTags and MoreFindings are how many an [OverviewFilter], or a service, has left out.
	MoreTags, MoreFindings int
}

// The steps of what [TagOverview] has of the last and of the next hour.
const (
	OverviewStep  = 5 * time.Minute
	OverviewSteps = 12
)

// OverviewFilter says what a viewer may see.
type OverviewFilter struct {
	// Sees reports whether the viewer may see the tag. Other tags are in no list, sum or finding. With it there are
	// neither locks nor stacks, because these may be about any tag. Default: the viewer sees everything.
	Sees func(tag string) bool
	// Errors reports whether the viewer may see errors of tasks of the tag. Default: it may for each tag that it sees.
	Errors func(tag string) bool
	// MostTags and MostFindings bound what is listed: the tags that have been overdue for longest, and the most urgent
	// findings. The sums are of all tags. Default: no bound.
	MostTags, MostFindings int
}

// OverviewTotals are sums over the tags of an overview.
type OverviewTotals struct {
	Executing DueTasks // Ticks is 0, here and below
	Overdue   DueTasks
	// DueNextMinute counts stored tasks. Ticks of schedules get their tasks 10 s or more before they are due.
	DueNextMinute DueTasks

	Completed int64     // tasks, in the last minute that all processes have written
	Failed    int64     // tasks that have failed for good, in the same minute
	Minute    time.Time // when that began; zero where it is not known

	Nodes  int // live processes that serve tags
	Silent int // processes that served tags, and whose heartbeat is over 5 s old
}

// TagOverview is how one tag stands.
type TagOverview struct {
	Tag string
	// Counts has up to 1,000 tasks of each status, fewer where there are many tags. Statuses without tasks are left
	// out.
	Counts map[delaytask.Status]int64
	Capped []delaytask.Status // whose count is a lower bound: there may be more

	Overdue   DueTasks  // due and not started; Ticks is 0
	OldestDue time.Time // the earliest due time of an overdue task; zero when none is overdue

	Paused      bool
	PausedSince time.Time // zero where it is not known
	PausedBy    string    // access token, or user@host of the command; "" where it is not known
	Reason      string    // of the pause, "" where none was given
	Nodes       []NodeRef // live processes that serve the tag

	// The following fields tell of the last hour.
	Started       int64         // first attempts; their lateness follows
	P50, P99, Max time.Duration // how late they started; P50 and P99 are near the real ones
	LastHour      []HourStep    // [OverviewSteps] of them, or none where the part is missing

	// Due is how many tasks fall due in each of [OverviewSteps] steps from Overview.DueStart on. It is nil where the
	// part is missing or nothing falls due.
	Due []DueTasks
}

// HourStep is what has happened to a tag within [OverviewStep].
type HourStep struct {
	Completed, Retried, Failed int64
	P99                        time.Duration // of how late first attempts started; 0 where none did
}

// NodeRef names a process.
type NodeRef struct {
	Number int
	Name   string
}

// Finding is something that needs attention: its cause, what it is about, since when, what shows it, and what to do.
type Finding struct {
	Code FindingCode
	Tag  string  // "": it is about no single tag
	Task int64   // one of the tasks; 0 for none
	Node NodeRef // that it is about; zero for none

	Since    time.Time // by the database's clock; zero where it is not known
	Number   int64     // of tasks, or of what the code names
	AtLeast  bool      // there may be more
	Group    string    // FailureGroup.ID of the most frequent error, "" for none
	Error    string    // that error, with * for what differs
	Stack    string    // where a processor hangs
	Evidence Evidence

	Text string // one sentence: what, and why
	Do   string // the command that shows more or mends it, or what to do
}

// Evidence is what else led to a finding. Each field belongs to the code that stands beside it; other findings leave it
// at zero.
type Evidence struct {
	Servers     []string         // two_databases: one of each, as host:port:server_id, sorted; replica: the source
	ClockWidth  time.Duration    // clock_wide: how exactly the process knows the time
	Nodes       int              // overdue: live processes that serve the tag; 0: callers of Pop take its tasks
	Executing   *DueTasks        // overdue: tasks of the tag that execute; nil where it is not known
	Thread      string           // rows_locked: the connection of the transaction
	MayLock     bool             // rows_locked: the server does not tell whether the rows are tasks
	Attempt     int              // hanging
	Completed   int64            // retrying: tasks completed while Number attempts failed
	LeasedUntil time.Time        // node_silent: when the last of its leases ends; zero where it holds none
	Status      delaytask.Status // purge_behind: of the tasks
	Retention   time.Duration    // purge_behind: of that status
	Tags        []string         // purge_behind; rows_locked: whose tasks wait here; sorted
	Schedules   []string         // of the codes of schedules; sorted
}

// FindingCode says, for programs, what a finding is about. Later versions may add codes.
type FindingCode string

// The codes of findings, the most urgent first.
const (
	FindingTwoDatabases FindingCode = "two_databases" // servers that are not one database answer at one address
	FindingReplica      FindingCode = "replica"       // the server takes no writes, or applies changes of another
	FindingClockHeld    FindingCode = "clock_held"    // this process starts nothing: it does not know the time
	FindingUnserved     FindingCode = "unserved"      // tasks are overdue, and no live process serves the tag
	FindingLeaseOver    FindingCode = "lease_over"    // tasks execute, and their leases have been over for long
	FindingRowsLocked   FindingCode = "rows_locked"   // a transaction has held locks on rows for long
	FindingOverdue      FindingCode = "overdue"       // tasks are overdue although live processes serve the tag
	FindingHanging      FindingCode = "hanging"       // a processor ignores that its context has ended
	FindingFailing      FindingCode = "failing"       // tasks have failed within the last 10 min
	FindingRetrying     FindingCode = "retrying"      // more attempts have failed than tasks were completed
	FindingNodeSilent   FindingCode = "node_silent"   // a process has ended without a word
	// Ticks of schedules are due, and no process decides about them.
	FindingScheduleBehind FindingCode = "schedule_behind"
	// Schedules have paused by themselves, because their runs failed.
	FindingSchedulePaused FindingCode = "schedule_paused"
	// No run of schedules has completed for two ticks or more.
	FindingScheduleUnsuccessful FindingCode = "schedule_unsuccessful"

	FindingPausedOverdue FindingCode = "paused_overdue" // tasks are overdue because the tag is paused
	FindingClockWide     FindingCode = "clock_wide"     // this process knows the time to within 0.1 s or worse
	FindingPurgeBehind   FindingCode = "purge_behind"   // ended tasks are past their retention
)

// MissingPart is a part of an overview that could not be read.
type MissingPart struct {
	Part OverviewPart
	Why  OverviewTrouble
}

// OverviewPart names a part of an overview that can be missing by itself.
type OverviewPart string

// The parts.
const (
	PartCounts   OverviewPart = "counts"   // Counts, Executing, and what is behind the retention
	PartDue      OverviewPart = "due"      // what is overdue, and what falls due within a minute
	PartLeases   OverviewPart = "leases"   // leases that are over, and leases of silent processes
	PartFailures OverviewPart = "failures" // what fails
	PartHistory  OverviewPart = "history"  // the last hour and the last minute
	PartForecast OverviewPart = "forecast" // the next hour
	// PartSchedules is what is wrong with schedules.
	PartSchedules OverviewPart = "schedules"
	PartLocks     OverviewPart = "locks" // transactions that hold locks; SQLite has none
)

// OverviewTrouble is the class of an error of a reading.
type OverviewTrouble string

// The classes.
const (
	TroubleTimeout  OverviewTrouble = "timeout"  // the database did not answer in time
	TroubleOperator OverviewTrouble = "operator" // a privilege or table is missing, or a disk full: see doctor
	TroubleDatabase OverviewTrouble = "database" // the database cannot be reached, or has refused the statement
)
