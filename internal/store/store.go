// Package store is the contract between the engine and what keeps the rows. It knows neither.
package store

import (
	"context"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// Tx is a caller's open transaction.
type Tx = delaytask.Tx

// Store is all that the engine needs of a database. Two implementations pass one conformance suite: sqlstore (SQL) and
// memstore (in memory, for simulation and tests).
//
// A method changes a row only under a guard: on its version, its status, or both. Rows that do not match the guard stay
// as they are and are no error. A method that cannot do its work returns a *row.Error, whose class says whether it may
// have changed something. An error that is not a *row.Error counts as [row.ClassUnknown]. A nil Tx means a connection
// of the store. Inside a caller's transaction nothing is retried.
//
// All moments are on the database's clock. Methods are safe for concurrent use.
type Store interface {
	Clock
	Saver
	Finder
	Leaser
	Keeper
	Lister
	Nodes
	Schedules
	Forecaster
	Rollups
	Auditor
}

// Clock reads the time that decides.
type Clock interface {
	// Now reads the database's clock and the identity of the server that answered.
	Now(ctx context.Context) (row.Reading, error)
}

// Saver writes new rows and reads rows back by their names.
type Saver interface {
	// InTransaction reports whether tx is inside of a transaction. It changes nothing.
	InTransaction(ctx context.Context, tx Tx) (bool, error)

	// Insert stores all rows (status pending, version 0) in one statement, or none. It returns row.ClassDuplicate when
	// an id or an unfinished key is taken. Get and FindActive tell which one.
	Insert(ctx context.Context, tx Tx, rows []row.Row) error

	// Get returns the rows that exist, in the order of their ids. A row that cannot be decoded is in broken instead.
	Get(ctx context.Context, tx Tx, ids []int64) (rows []row.Row, broken []row.Broken, err error)

	// FindActive returns the unfinished rows that carry one of the keys.
	FindActive(ctx context.Context, tx Tx, keys []row.TagKey) ([]row.Row, error)

	// LockActive returns the unfinished row that carries the key as it is now, also where the transaction reads an
	// older state, and locks it until the transaction ends. It is for keys that an Insert of the transaction has met.
	LockActive(ctx context.Context, tx Tx, key row.TagKey) (rows []row.Row, broken []row.Broken, err error)
}

// Finder finds rows that need attention. Its reads are plain, take no lock, and use the index (tag, status, due_time).
type Finder interface {
	// Due returns pending rows of the window, ordered by (due, id), at most Limit. Rows whose due time is not set come
	// first when the window has no lower end.
	Due(ctx context.Context, w row.Window) ([]row.Due, error)

	// Expired returns executing rows of the tags whose lease is over on the server's clock, the oldest lease first,
	// without bodies, about limit of them at most. It may have rows of tags that differ only in spaces at their ends.
	Expired(ctx context.Context, tags []string, limit int) (rows []row.Row, broken []row.Broken, err error)

	// Orphans returns executing rows of the tags that one of the processes has claimed, at most limit. It may have rows
	// of tags that differ only in spaces at their ends.
	Orphans(ctx context.Context, tags []string, processes []int64, limit int) ([]row.State, error)

	// States returns the states of the rows now. Missing rows are left out.
	States(ctx context.Context, ids []int64) ([]row.State, error)

	// Locked returns the rows that another transaction has locked. It changes nothing and keeps no lock.
	Locked(ctx context.Context, ids []int64) ([]int64, error)
}

// Leaser claims rows, keeps their leases and ends them.
type Leaser interface {
	// Claim executes the claim and reads back the rows that it won, bodies included, where the claim is visible: on a
	// cluster by the same connection. It leaves out the others. It spends at most one lock wait (1 s, on MySQL 2 s).
	// Then the error is row.ClassLocked and nothing was claimed. After row.ClassUnknown, Orphans and Get find what was
	// won.
	Claim(ctx context.Context, c row.Claim) (row.Claimed, error)

	// Renew moves the lease of every row that is still executing at the named version to now + TTR. It writes the
	// executor and the start that the lease names. On the same connection it reads the states of all named rows after
	// that, and returns them.
	Renew(ctx context.Context, leases []row.Lease) ([]row.State, error)

	// Update applies fenced transitions in one statement and returns how many applied. When fewer applied than were
	// sent, States tells which. It returns row.ClassDuplicate when a transition out of a final status needs a taken
	// key.
	Update(ctx context.Context, tx Tx, changes []row.Change) (applied int, err error)

	// Adopt sets the missing due time of the named pending rows, at the named versions: to expected_time where set,
	// otherwise to now. The version does not change.
	Adopt(ctx context.Context, rows []row.Ref) error

	// Discard sets rows that cannot be decoded to failed with the reason, guarded by version and stored status. It
	// returns how many were. When these are fewer than were sent, States tells which.
	Discard(ctx context.Context, broken []row.Broken) (discarded int, err error)
}

// Keeper works on the table as a whole.
type Keeper interface {
	// Purge deletes up to limit rows of a final status and of the tags whose due time is before the bound, tag by tag,
	// entering by primary key. It returns the tags from the one on at which it has met the limit.
	Purge(ctx context.Context, status row.Status, tags []string, before row.Time, limit int) (
		deleted int, left []string, err error)

	// Renumber gives ids of next to up to limit rows whose id is below 1 or above last, unless they are executing. It
	// returns how many, and with them the statement that makes the database number new rows from there on.
	Renumber(ctx context.Context, last int64, next func() int64, limit int) (moved int, mend string, err error)

	// Oldest returns the tags that have rows of the status, each with its smallest due time and without a count. It
	// takes one step of the index for each tag, however many rows there are. Tags that differ only in spaces at their
	// ends may come as one.
	Oldest(ctx context.Context, status row.Status) ([]row.TagCount, error)

	// Lateness returns execution_time - expected_time of the newest completed rows of every tag, at most perTag each.
	// It leaves out rows that finished before since. A zero since is the beginning.
	Lateness(ctx context.Context, tags []string, since row.Time, perTag int) ([]row.Lateness, error)
}

// Lister reads for people, who ask of tables of any size. A read enters by an index in that index's own order, and its
// cost follows its limit and not the table.
type Lister interface {
	// Places returns what each span has, in its order, at most limit a span. The lists come in the order of the spans.
	Places(ctx context.Context, spans []row.Span, limit int) ([][]row.Place, error)

	// FirstDue returns the tags that have rows in the span, whatever its Tag, each with the due time of its first place
	// in Oldest. With After that may be a place at the same due time that comes before it. It takes a step of the index
	// for each tag.
	FirstDue(ctx context.Context, span row.Span) ([]row.TagCount, error)

	// FirstIDs returns the tags that have rows in the span at the due time, whatever its Tag, each with the id of the
	// first of them. It takes a step of the index for each tag that has rows.
	FirstIDs(ctx context.Context, span row.Span, due row.Time) (map[string]int64, error)

	// Newest returns the largest ids below the bound, the largest first.
	Newest(ctx context.Context, below int64, limit int) ([]int64, error)

	// Match returns the rows that match, in the order of their ids. With bodies their sizes count too.
	Match(ctx context.Context, ids []int64, m row.Match, bodies bool) ([]row.Sized, error)

	// Rows is Get without a transaction. Without bodies it leaves them out.
	Rows(ctx context.Context, ids []int64, bodies bool) (rows []row.Row, broken []row.Broken, err error)

	// Failures returns the errors of the rows that exist, in the order of their ids.
	Failures(ctx context.Context, ids []int64) ([]row.Failure, error)

	// Count returns how many rows each pair has, at most most each. Tags that differ only in spaces at their ends may
	// count as one.
	Count(ctx context.Context, pairs []row.Pair, most int) ([]int64, error)
}

// Cluster is what one statement tells of all nodes and tags. It does not grow with the nodes.
type Cluster struct {
	// Members differs when the nodes have changed: which ones there are, what they say of themselves, or whose
	// heartbeat is fresh.
	Members int64
	Tags    []row.TagState // as Tags returns them
	Look    row.Time       // the same
	Reading row.Reading
}

// Nodes keeps the nodes (delay_task_node), the names of processes (delay_task_process) and the paused tags
// (delay_task_tag).
type Nodes interface {
	// Tags returns the state of every tag that has one, and the smallest Look of a schedule, zero when none has one.
	Tags(ctx context.Context) (tags []row.TagState, look row.Time, err error)

	// SetTag stores the state of a tag.
	SetTag(ctx context.Context, t row.TagState) error

	// Cluster returns what nodes ask for every second. A heartbeat is fresh that is at most so old by the clock of the
	// reading.
	Cluster(ctx context.Context, fresh time.Duration) (Cluster, error)

	// Nodes returns all nodes, ordered by number, and a reading of the clock to judge their heartbeats by.
	Nodes(ctx context.Context) ([]row.Node, row.Reading, error)

	// Join leases n.Number for n.Token, with a fresh heartbeat. It returns false when another token has the number and
	// a heartbeat that is at most staleAfter old.
	Join(ctx context.Context, n row.Node, staleAfter time.Duration) (bool, error)

	// Beat writes the node's row with a fresh heartbeat. It returns false when n.Token has the number no more.
	Beat(ctx context.Context, n row.Node) (bool, error)

	// Leave deletes the rows of the tokens.
	Leave(ctx context.Context, tokens []string) error

	// Introduce stores what people call a process, and that it was seen now.
	Introduce(ctx context.Context, p row.Process) error

	// Processes returns the processes that were introduced, ordered by id, and leaves out the others.
	Processes(ctx context.Context, ids []int64) ([]row.Process, error)

	// PurgeProcesses deletes up to limit processes that were seen last before the moment.
	PurgeProcesses(ctx context.Context, before row.Time, limit int) (deleted int, err error)
}

// Schedules keeps the schedules (delay_task_schedule) and what became of their ticks (delay_task_schedule_run).
type Schedules interface {
	// Decide applies all decisions in one transaction, or none. It returns false when a guard did not match: a schedule
	// has another version or is gone, a run is not open, or a change of a task did not apply. It returns
	// row.ClassDuplicate when a name, a tick, an id or an unfinished key is taken.
	Decide(ctx context.Context, decisions []row.Decision) (applied bool, err error)

	// LookAt returns schedules whose Look is set and at most until, ordered by (Look, id), at most limit. After a full
	// page the caller asks again from the last one of it: from and afterID leave out what comes before.
	LookAt(ctx context.Context, until, from row.Time, afterID int64, limit int) (
		[]row.Schedule, []row.Broken, error)

	// Schedules returns those that match, ordered by name.
	Schedules(ctx context.Context, f row.ScheduleFilter) ([]row.Schedule, []row.Broken, error)

	// OpenRuns returns the open runs of the schedules, ordered by (schedule, tick, cause), at most limit.
	OpenRuns(ctx context.Context, schedules []int64, limit int) ([]row.ScheduleRun, error)

	// Runs returns what became of the ticks of a schedule before the moment, the newest first, at most limit. A zero
	// moment is the end of time.
	Runs(ctx context.Context, schedule int64, before row.Time, limit int) ([]row.ScheduleRun, error)

	// TrimRuns deletes runs of a schedule whose ticks are before the moment, that are not open, and that come after the
	// newest keep of these, at most limit. It returns how many.
	TrimRuns(ctx context.Context, schedule int64, before row.Time, keep, limit int) (deleted int, err error)
}

// Forecaster tells how many pending rows fall due when. Its reads take no lock and use the index (tag, status,
// due_time).
type Forecaster interface {
	// CountDue counts the rows of the cells, and leaves out cells without rows. Where the database can it counts up to
	// most rows of a cell, and then says that there are more. It returns false, and no counts, when it has worked for
	// longer than the limit.
	CountDue(ctx context.Context, g row.DueGrid, most int, limit time.Duration) (
		counts []row.DueCount, complete bool, err error)

	// EstimateDue returns about how many rows the cells have, as the database tells without reading them, and leaves
	// out cells without rows. The cost is one of each cell. It returns false when the database cannot tell.
	EstimateDue(ctx context.Context, g row.DueGrid) (counts []row.DueCount, known bool, err error)

	// Upcoming returns active schedules whose cursor is before the moment, at most limit, without what only their runs
	// need. It leaves out those that cannot be decoded.
	Upcoming(ctx context.Context, before row.Time, limit int) ([]row.Schedule, error)
}

// Rollups keeps lateness and results over time (delay_task_rollup).
type Rollups interface {
	// PutRollups stores the rows, each in place of the one with its span, begin, tag and node.
	PutRollups(ctx context.Context, rows []row.Rollup) error

	// Rollups returns the rows of a span that begin from a moment on and before another, of these tags, or of all where
	// tags is nil. They are ordered by begin, tag and node.
	Rollups(ctx context.Context, span row.RollupSpan, tags []string, from, to row.Time) ([]row.Rollup, error)

	// TrimRollups deletes rows of a span that begin before the moment, the oldest first, about limit of them at most.
	// It returns how many.
	TrimRollups(ctx context.Context, span row.RollupSpan, before row.Time, limit int) (deleted int, err error)
}

// Auditor keeps what people have done (delay_task_audit).
type Auditor interface {
	// BeginAudit stores an entry without an end, at the database's time, and returns its id. On one server the id is
	// greater than the ids of earlier entries. After row.ClassUnknown the entry may be there.
	BeginAudit(ctx context.Context, e row.AuditEntry) (id int64, err error)

	// EndAudit stores what became of an act, at the database's time. An entry that has an end keeps it.
	EndAudit(ctx context.Context, id int64, end row.AuditEnd) error

	// ReportAudit stores how many tasks an act under way has changed so far, what it is, and that its process is at it
	// now, at the database's time. It reports whether a caller has asked to stop it. An entry that has an end stays as
	// it is, and one that does not exist is no error.
	ReportAudit(ctx context.Context, id, tasks int64, bulk string) (stop bool, err error)

	// StopAudit stores that a caller asks to stop an act under way, at the database's time. An entry that has an end,
	// or was asked before, stays as it is.
	StopAudit(ctx context.Context, id int64) error

	// AuditEntries returns the entries of an action, of all where it is "", with the largest ids below the bound, the
	// largest first, at most limit. It reads no entries of other actions.
	AuditEntries(ctx context.Context, action string, below int64, limit int) ([]row.AuditEntry, error)

	// PurgeAudit looks at the smallest ids, at most limit, and deletes the entries that began before the moment.
	PurgeAudit(ctx context.Context, before row.Time, limit int) (deleted int, err error)
}
