package faultstore

import (
	"context"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
)

// do is call for the methods that answer with an error alone.
func (s *Store) do(ctx context.Context, method string, do func(context.Context) error) error {
	_, err := call(ctx, s, method, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// answer is what a method that sets broken rows apart has read.
type answer[T any] struct {
	rows   []T
	broken []row.Broken
}

// readApart is call for the methods that set broken rows apart.
func readApart[T any](
	ctx context.Context, s *Store, method string, do func(context.Context) ([]T, []row.Broken, error),
) ([]T, []row.Broken, error) {
	got, err := call(ctx, s, method, func(ctx context.Context) (answer[T], error) {
		rows, broken, err := do(ctx)
		return answer[T]{rows, broken}, err
	})
	return got.rows, got.broken, err
}

// What follows is [store.Store].

func (s *Store) Now(ctx context.Context) (row.Reading, error) {
	return call(ctx, s, "Now", s.inner.Now)
}

func (s *Store) InTransaction(ctx context.Context, tx store.Tx) (bool, error) {
	return call(ctx, s, "InTransaction", func(ctx context.Context) (bool, error) {
		return s.inner.InTransaction(ctx, tx)
	})
}

func (s *Store) Insert(ctx context.Context, tx store.Tx, rows []row.Row) error {
	return s.do(ctx, "Insert", func(ctx context.Context) error { return s.inner.Insert(ctx, tx, rows) })
}

func (s *Store) Get(ctx context.Context, tx store.Tx, ids []int64) ([]row.Row, []row.Broken, error) {
	return readApart(ctx, s, "Get", func(ctx context.Context) ([]row.Row, []row.Broken, error) {
		return s.inner.Get(ctx, tx, ids)
	})
}

func (s *Store) FindActive(ctx context.Context, tx store.Tx, keys []row.TagKey) ([]row.Row, error) {
	return call(ctx, s, "FindActive", func(ctx context.Context) ([]row.Row, error) {
		return s.inner.FindActive(ctx, tx, keys)
	})
}

func (s *Store) LockActive(ctx context.Context, tx store.Tx, key row.TagKey) ([]row.Row, []row.Broken, error) {
	return readApart(ctx, s, "LockActive", func(ctx context.Context) ([]row.Row, []row.Broken, error) {
		return s.inner.LockActive(ctx, tx, key)
	})
}

func (s *Store) Due(ctx context.Context, w row.Window) ([]row.Due, error) {
	return call(ctx, s, "Due", func(ctx context.Context) ([]row.Due, error) { return s.inner.Due(ctx, w) })
}

func (s *Store) Expired(ctx context.Context, tags []string, limit int) ([]row.Row, []row.Broken, error) {
	return readApart(ctx, s, "Expired", func(ctx context.Context) ([]row.Row, []row.Broken, error) {
		return s.inner.Expired(ctx, tags, limit)
	})
}

func (s *Store) Orphans(ctx context.Context, tags []string, processes []int64, limit int) ([]row.State, error) {
	return call(ctx, s, "Orphans", func(ctx context.Context) ([]row.State, error) {
		return s.inner.Orphans(ctx, tags, processes, limit)
	})
}

func (s *Store) States(ctx context.Context, ids []int64) ([]row.State, error) {
	return call(ctx, s, "States", func(ctx context.Context) ([]row.State, error) { return s.inner.States(ctx, ids) })
}

func (s *Store) Locked(ctx context.Context, ids []int64) ([]int64, error) {
	return call(ctx, s, "Locked", func(ctx context.Context) ([]int64, error) { return s.inner.Locked(ctx, ids) })
}

func (s *Store) Claim(ctx context.Context, c row.Claim) (row.Claimed, error) {
	return call(ctx, s, "Claim", func(ctx context.Context) (row.Claimed, error) { return s.inner.Claim(ctx, c) })
}

func (s *Store) Renew(ctx context.Context, leases []row.Lease) ([]row.State, error) {
	return call(ctx, s, "Renew", func(ctx context.Context) ([]row.State, error) { return s.inner.Renew(ctx, leases) })
}

func (s *Store) Update(ctx context.Context, tx store.Tx, changes []row.Change) (int, error) {
	return call(ctx, s, "Update", func(ctx context.Context) (int, error) { return s.inner.Update(ctx, tx, changes) })
}

func (s *Store) Adopt(ctx context.Context, rows []row.Ref) error {
	return s.do(ctx, "Adopt", func(ctx context.Context) error { return s.inner.Adopt(ctx, rows) })
}

func (s *Store) Discard(ctx context.Context, broken []row.Broken) (int, error) {
	return call(ctx, s, "Discard", func(ctx context.Context) (int, error) { return s.inner.Discard(ctx, broken) })
}

func (s *Store) Purge(ctx context.Context, status row.Status, tags []string, before row.Time, limit int) (
	deleted int, left []string, err error) {
	deleted, err = call(ctx, s, "Purge", func(ctx context.Context) (deleted int, err error) {
		deleted, left, err = s.inner.Purge(ctx, status, tags, before, limit)
		return deleted, err
	})
	return deleted, left, err
}

// Renumber passes: the stores that faults are made for have nothing to do.
func (s *Store) Renumber(ctx context.Context, last int64, next func() int64, limit int) (int, string, error) {
	return s.inner.Renumber(ctx, last, next, limit)
}

func (s *Store) Places(ctx context.Context, spans []row.Span, limit int) ([][]row.Place, error) {
	return call(ctx, s, "Places", func(ctx context.Context) ([][]row.Place, error) {
		return s.inner.Places(ctx, spans, limit)
	})
}

func (s *Store) FirstDue(ctx context.Context, span row.Span) ([]row.TagCount, error) {
	return call(ctx, s, "FirstDue", func(ctx context.Context) ([]row.TagCount, error) {
		return s.inner.FirstDue(ctx, span)
	})
}

func (s *Store) FirstIDs(ctx context.Context, span row.Span, due row.Time) (map[string]int64, error) {
	return call(ctx, s, "FirstIDs", func(ctx context.Context) (map[string]int64, error) {
		return s.inner.FirstIDs(ctx, span, due)
	})
}

func (s *Store) Newest(ctx context.Context, below int64, limit int) ([]int64, error) {
	return call(ctx, s, "Newest", func(ctx context.Context) ([]int64, error) {
		return s.inner.Newest(ctx, below, limit)
	})
}

func (s *Store) Match(ctx context.Context, ids []int64, m row.Match, bodies bool) ([]row.Sized, error) {
	return call(ctx, s, "Match", func(ctx context.Context) ([]row.Sized, error) {
		return s.inner.Match(ctx, ids, m, bodies)
	})
}

func (s *Store) Rows(ctx context.Context, ids []int64, bodies bool) ([]row.Row, []row.Broken, error) {
	return readApart(ctx, s, "Rows", func(ctx context.Context) ([]row.Row, []row.Broken, error) {
		return s.inner.Rows(ctx, ids, bodies)
	})
}

func (s *Store) Failures(ctx context.Context, ids []int64) ([]row.Failure, error) {
	return call(ctx, s, "Failures", func(ctx context.Context) ([]row.Failure, error) {
		return s.inner.Failures(ctx, ids)
	})
}

func (s *Store) Count(ctx context.Context, pairs []row.Pair, most int) ([]int64, error) {
	return call(ctx, s, "Count", func(ctx context.Context) ([]int64, error) { return s.inner.Count(ctx, pairs, most) })
}

func (s *Store) Oldest(ctx context.Context, status row.Status) ([]row.TagCount, error) {
	return call(ctx, s, "Oldest", func(ctx context.Context) ([]row.TagCount, error) {
		return s.inner.Oldest(ctx, status)
	})
}

func (s *Store) Lateness(ctx context.Context, tags []string, since row.Time, perTag int) ([]row.Lateness, error) {
	return call(ctx, s, "Lateness", func(ctx context.Context) ([]row.Lateness, error) {
		return s.inner.Lateness(ctx, tags, since, perTag)
	})
}

func (s *Store) Tags(ctx context.Context) ([]row.TagState, row.Time, error) {
	type answer struct {
		tags []row.TagState
		look row.Time
	}
	got, err := call(ctx, s, "Tags", func(ctx context.Context) (answer, error) {
		tags, look, err := s.inner.Tags(ctx)
		return answer{tags, look}, err
	})
	return got.tags, got.look, err
}

func (s *Store) SetTag(ctx context.Context, t row.TagState) error {
	return s.do(ctx, "SetTag", func(ctx context.Context) error { return s.inner.SetTag(ctx, t) })
}

func (s *Store) Cluster(ctx context.Context, fresh time.Duration) (store.Cluster, error) {
	return call(ctx, s, "Cluster", func(ctx context.Context) (store.Cluster, error) {
		return s.inner.Cluster(ctx, fresh)
	})
}

func (s *Store) Nodes(ctx context.Context) ([]row.Node, row.Reading, error) {
	type answer struct {
		nodes   []row.Node
		reading row.Reading
	}
	got, err := call(ctx, s, "Nodes", func(ctx context.Context) (answer, error) {
		nodes, reading, err := s.inner.Nodes(ctx)
		return answer{nodes, reading}, err
	})
	return got.nodes, got.reading, err
}

func (s *Store) Join(ctx context.Context, n row.Node, staleAfter time.Duration) (bool, error) {
	return call(ctx, s, "Join", func(ctx context.Context) (bool, error) { return s.inner.Join(ctx, n, staleAfter) })
}

func (s *Store) Beat(ctx context.Context, n row.Node) (bool, error) {
	return call(ctx, s, "Beat", func(ctx context.Context) (bool, error) { return s.inner.Beat(ctx, n) })
}

func (s *Store) Leave(ctx context.Context, tokens []string) error {
	return s.do(ctx, "Leave", func(ctx context.Context) error { return s.inner.Leave(ctx, tokens) })
}

func (s *Store) Decide(ctx context.Context, decisions []row.Decision) (bool, error) {
	return call(ctx, s, "Decide", func(ctx context.Context) (bool, error) { return s.inner.Decide(ctx, decisions) })
}

func (s *Store) LookAt(ctx context.Context, until, from row.Time, afterID int64, limit int) (
	[]row.Schedule, []row.Broken, error) {
	return readApart(ctx, s, "LookAt", func(ctx context.Context) ([]row.Schedule, []row.Broken, error) {
		return s.inner.LookAt(ctx, until, from, afterID, limit)
	})
}

func (s *Store) Schedules(ctx context.Context, f row.ScheduleFilter) ([]row.Schedule, []row.Broken, error) {
	return readApart(ctx, s, "Schedules", func(ctx context.Context) ([]row.Schedule, []row.Broken, error) {
		return s.inner.Schedules(ctx, f)
	})
}

func (s *Store) OpenRuns(ctx context.Context, schedules []int64, limit int) ([]row.ScheduleRun, error) {
	return call(ctx, s, "OpenRuns", func(ctx context.Context) ([]row.ScheduleRun, error) {
		return s.inner.OpenRuns(ctx, schedules, limit)
	})
}

func (s *Store) Runs(ctx context.Context, schedule int64, before row.Time, limit int) ([]row.ScheduleRun, error) {
	return call(ctx, s, "Runs", func(ctx context.Context) ([]row.ScheduleRun, error) {
		return s.inner.Runs(ctx, schedule, before, limit)
	})
}

func (s *Store) TrimRuns(
	ctx context.Context, schedule int64, before row.Time, keep, limit int,
) (int, error) {
	return call(ctx, s, "TrimRuns", func(ctx context.Context) (int, error) {
		return s.inner.TrimRuns(ctx, schedule, before, keep, limit)
	})
}

func (s *Store) CountDue(ctx context.Context, g row.DueGrid, most int, limit time.Duration) (
	[]row.DueCount, bool, error) {
	return readDue(ctx, s, "CountDue", func(ctx context.Context) ([]row.DueCount, bool, error) {
		return s.inner.CountDue(ctx, g, most, limit)
	})
}

func (s *Store) EstimateDue(ctx context.Context, g row.DueGrid) ([]row.DueCount, bool, error) {
	return readDue(ctx, s, "EstimateDue", func(ctx context.Context) ([]row.DueCount, bool, error) {
		return s.inner.EstimateDue(ctx, g)
	})
}

func readDue(
	ctx context.Context, s *Store, method string, do func(context.Context) ([]row.DueCount, bool, error),
) ([]row.DueCount, bool, error) {
	type answer struct {
		counts []row.DueCount
		ok     bool
	}
	got, err := call(ctx, s, method, func(ctx context.Context) (answer, error) {
		counts, ok, err := do(ctx)
		return answer{counts, ok}, err
	})
	return got.counts, got.ok, err
}

func (s *Store) Upcoming(ctx context.Context, before row.Time, limit int) ([]row.Schedule, error) {
	return call(ctx, s, "Upcoming", func(ctx context.Context) ([]row.Schedule, error) {
		return s.inner.Upcoming(ctx, before, limit)
	})
}

func (s *Store) PutRollups(ctx context.Context, rows []row.Rollup) error {
	return s.do(ctx, "PutRollups", func(ctx context.Context) error { return s.inner.PutRollups(ctx, rows) })
}

func (s *Store) Rollups(ctx context.Context, span row.RollupSpan, tags []string, from, to row.Time) (
	[]row.Rollup, error) {
	return call(ctx, s, "Rollups", func(ctx context.Context) ([]row.Rollup, error) {
		return s.inner.Rollups(ctx, span, tags, from, to)
	})
}

func (s *Store) TrimRollups(ctx context.Context, span row.RollupSpan, before row.Time, limit int) (int, error) {
	return call(ctx, s, "TrimRollups", func(ctx context.Context) (int, error) {
		return s.inner.TrimRollups(ctx, span, before, limit)
	})
}

func (s *Store) BeginAudit(ctx context.Context, e row.AuditEntry) (int64, error) {
	return call(ctx, s, "BeginAudit", func(ctx context.Context) (int64, error) { return s.inner.BeginAudit(ctx, e) })
}

func (s *Store) EndAudit(ctx context.Context, id int64, end row.AuditEnd) error {
	return s.do(ctx, "EndAudit", func(ctx context.Context) error { return s.inner.EndAudit(ctx, id, end) })
}

func (s *Store) ReportAudit(ctx context.Context, id, tasks int64, bulk string) (bool, error) {
	return call(ctx, s, "ReportAudit", func(ctx context.Context) (bool, error) {
		return s.inner.ReportAudit(ctx, id, tasks, bulk)
	})
}

func (s *Store) StopAudit(ctx context.Context, id int64) error {
	return s.do(ctx, "StopAudit", func(ctx context.Context) error { return s.inner.StopAudit(ctx, id) })
}

func (s *Store) AuditEntries(ctx context.Context, action string, below int64, limit int) ([]row.AuditEntry, error) {
	return call(ctx, s, "AuditEntries", func(ctx context.Context) ([]row.AuditEntry, error) {
		return s.inner.AuditEntries(ctx, action, below, limit)
	})
}

func (s *Store) Introduce(ctx context.Context, p row.Process) error {
	return s.do(ctx, "Introduce", func(ctx context.Context) error { return s.inner.Introduce(ctx, p) })
}

func (s *Store) Processes(ctx context.Context, ids []int64) ([]row.Process, error) {
	return call(ctx, s, "Processes", func(ctx context.Context) ([]row.Process, error) {
		return s.inner.Processes(ctx, ids)
	})
}

func (s *Store) PurgeProcesses(ctx context.Context, before row.Time, limit int) (int, error) {
	return call(ctx, s, "PurgeProcesses", func(ctx context.Context) (int, error) {
		return s.inner.PurgeProcesses(ctx, before, limit)
	})
}

func (s *Store) PurgeAudit(ctx context.Context, before row.Time, limit int) (int, error) {
	return call(ctx, s, "PurgeAudit", func(ctx context.Context) (int, error) {
		return s.inner.PurgeAudit(ctx, before, limit)
	})
}
