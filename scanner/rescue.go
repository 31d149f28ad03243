package scanner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// refusedFor is how long a rescue leaves out a row that the database refuses to change.
const refusedFor = 10 * time.Second

// rangeFor is how long it leaves out rows of a tag of which another transaction has locked a range.
const rangeFor = 5 * time.Second

// Leases is what a rescue needs of a store.
type Leases interface {
	// Expired returns executing rows whose lease is over on the server's clock, the oldest lease first.
	Expired(ctx context.Context, limit int) ([]row.Row, []row.Broken, error)
	// States returns the present state of the rows. Missing rows are left out.
	States(ctx context.Context, ids []int64) ([]row.State, error)
	// Locked returns the rows that another transaction has locked, and waits for none.
	Locked(ctx context.Context, ids []int64) ([]int64, error)
	// Discard sets rows that cannot be decoded to failed, and reports them. There may be none.
	Discard(ctx context.Context, broken []row.Broken) error
}

// Rescue ends the leases of executors that are gone. See [Verdict] for what becomes of the rows.
type Rescue struct {
	Leases Leases
	Update func(ctx context.Context, changes []row.Change) (applied int, err error) // fenced, all in one statement
	Now    func() (now row.Time, ok bool)                                           // the database's clock
	// Held reports that leases which look expired may not be: another clock was found, or executors could not renew
	// them because the database was away. It is called when some have been read. While it is true nothing is done with
	// them.
	Held func() bool
	// Rescued is called with the rows as they are after the change: pending again, or failed.
	Rescued    func(rows []row.Row)
	Quarantine int // a row that lost this many leases is failed
	Page       int // rows in one read and one statement
	Log        *slog.Logger

	refused map[int64]row.Time // rows that could not be changed, until when they are left out
	locked  map[int64]bool     // rows that another transaction held when last checked; left out too
}

// Pass rescues page by page until no lease is over. It must not run twice at a time.
func (r *Rescue) Pass(ctx context.Context) error {
	if r.refused == nil {
		r.refused, r.locked = make(map[int64]row.Time), make(map[int64]bool)
	}
	return errors.Join(r.recheckLocked(ctx), r.pages(ctx))
}

func (r *Rescue) pages(ctx context.Context) error {
	for {
		now, ok := r.Now()
		if !ok {
			return nil
		}
		maps.DeleteFunc(r.refused, func(_ int64, until row.Time) bool { return until <= now })
		// Rows that are left out lie at the front of what is read, so they must not use up the page.
		leftOut := len(r.refused) + len(r.locked)
		limit := r.Page + leftOut
		rows, broken, err := r.Leases.Expired(ctx, limit)
		if err != nil {
			return err
		}
		if len(rows)+len(broken) == 0 || r.Held() {
			return nil
		}
		full := len(rows)+len(broken) >= limit
		discardErr := r.Leases.Discard(ctx, broken)
		rows, lockedErr := r.withoutLocked(ctx, r.without(rows))
		rescued, err := r.apply(ctx, rows, now)
		// the next page lies behind these
		moved := rescued > 0 || len(broken) > 0 || len(r.locked)+len(r.refused) > leftOut
		if err := errors.Join(discardErr, lockedErr, err); err != nil || !full || !moved {
			return err
		}
	}
}

// apply ends the leases in one statement, so that it waits for another transaction at most twice, and returns how many
// it ended. Rows that cannot be changed now are left out of later reads, so that they hold up no other.
func (r *Rescue) apply(ctx context.Context, rows []row.Row, now row.Time) (int, error) {
	rescued, err := r.update(ctx, rows, now)
	switch row.ClassOf(err) {
	case row.ClassLocked:
		locked, err := r.Leases.Locked(ctx, row.IDsOf(rows, rowID))
		if err != nil {
			return 0, err
		}
		if len(locked) == 0 {
			return r.applyByTag(ctx, rows, now)
		}
		r.leaveOut(locked)
		return r.update(ctx, r.without(rows), now)
	case row.ClassCaller, row.ClassDuplicate:
		if len(rows) == 1 {
			r.refused[rows[0].ID] = now.Add(refusedFor)
			return 0, err
		}
		half := len(rows) / 2
		first, firstErr := r.apply(ctx, rows[:half], now)
		second, secondErr := r.apply(ctx, rows[half:], now)
		return first + second, errors.Join(firstErr, secondErr)
	default:
		return rescued, err
	}
}

// applyByTag ends the leases tag by tag, because another transaction has locked a range of one tag's rows. It leaves
// the rows of a tag that waits out of the next passes.
func (r *Rescue) applyByTag(ctx context.Context, rows []row.Row, now row.Time) (int, error) {
	rescued, failed := 0, []error(nil)
	byTag := map[string][]row.Row{}
	for _, of := range rows {
		byTag[of.Tag] = append(byTag[of.Tag], of)
	}
	for _, rows := range byTag {
		n, err := r.update(ctx, rows, now)
		rescued += n
		if err != nil && row.ClassOf(err) != row.ClassLocked {
			failed = append(failed, err)
		} else if err != nil {
			for _, of := range rows {
				r.refused[of.ID] = now.Add(rangeFor)
			}
			r.Log.Warn("leases that are over cannot be ended now: another transaction has locked a range of the tag",
				"tag", rows[0].Tag, "tasks", len(rows))
		}
	}
	return rescued, errors.Join(failed...)
}

// update ends the leases in one statement and reports the rows that it changed.
func (r *Rescue) update(ctx context.Context, rows []row.Row, now row.Time) (int, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	changes := make([]row.Change, len(rows))
	for i := range rows {
		var started row.Time
		if rows[i].FirstStart() {
			started = rows[i].Execution
		}
		changes[i] = Verdict(rows[i], started, now, r.Quarantine)
	}
	applied, err := r.Update(ctx, changes)
	if err != nil && row.ClassOf(err) != row.ClassUnknown {
		return 0, err
	}
	if err != nil || applied < len(changes) {
		var readErr error
		rows, changes, readErr = r.confirmed(ctx, rows, changes)
		err = errors.Join(err, readErr)
	}
	if len(rows) == 0 {
		return 0, err
	}
	after := make([]row.Row, len(rows))
	for i := range rows {
		after[i] = changed(rows[i], changes[i])
	}
	r.Rescued(after)
	return len(after), err
}

// confirmed keeps the changes that are to be seen in the table. A row that its late executor settled, or that another
// node has claimed since, has an executor. One that another node rescued has another due time. A node that took that
// rescue for its own would start the task at its own due time. After a failover the new server's clock may reach that
// time again.
func (r *Rescue) confirmed(ctx context.Context, rows []row.Row, changes []row.Change) ([]row.Row, []row.Change, error) {
	states, err := r.Leases.States(ctx, row.IDsOf(rows, rowID))
	if err != nil {
		return nil, nil, err
	}
	seen := row.StatesByID(states)
	var keptRows []row.Row
	var kept []row.Change
	for i, c := range changes {
		s, ok := seen[c.ID]
		if ok && s.Version == c.Version+1 && s.Status == c.To && s.Due == c.Due && s.Executor == c.Executor {
			keptRows, kept = append(keptRows, rows[i]), append(kept, c)
		}
	}
	return keptRows, kept, nil
}

// leaveOut leaves rows out for as long as another transaction holds them.
func (r *Rescue) leaveOut(locked []int64) {
	for _, id := range locked {
		r.locked[id] = true
	}
	if len(locked) > 0 {
		r.Log.Warn("leases that are over cannot be ended now; the rows are left out until no transaction holds them",
			"tasks", locked)
	}
}

// recheckLocked takes back those that no transaction holds any more. That may have been a late result or the rescue of
// another node, which take a moment, or a caller's transaction that stays open for an hour.
func (r *Rescue) recheckLocked(ctx context.Context) error {
	if len(r.locked) == 0 {
		return nil
	}
	locked, err := r.Leases.Locked(ctx, slices.Collect(maps.Keys(r.locked)))
	if err != nil {
		return err
	}
	clear(r.locked)
	for _, id := range locked {
		r.locked[id] = true
	}
	return nil
}

// withoutLocked leaves out locked rows, if some are known already: one locked row often means many, and a statement
// that meets them waits before it fails.
func (r *Rescue) withoutLocked(ctx context.Context, rows []row.Row) ([]row.Row, error) {
	if len(r.locked) == 0 || len(rows) == 0 {
		return rows, nil
	}
	locked, err := r.Leases.Locked(ctx, row.IDsOf(rows, rowID))
	if err != nil {
		return rows, err
	}
	r.leaveOut(locked)
	return r.without(rows), nil
}

// without returns the rows that are not left out.
func (r *Rescue) without(rows []row.Row) []row.Row {
	var rest []row.Row
	for _, candidate := range rows {
		if _, refused := r.refused[candidate.ID]; !refused && !r.locked[candidate.ID] {
			rest = append(rest, candidate)
		}
	}
	return rest
}

func rowID(r row.Row) int64 { return r.ID }

// Verdict decides what becomes of a row whose lease is over: it runs again at once, and a crash is counted instead of
// an attempt. When its crashes reach the limit it is failed instead, because it probably ends its executors. A popped
// row has crashed no process: its attempt is spent, and it is failed when attempts are used up. started is when the
// attempt started, if that is known.
func Verdict(r row.Row, started, now row.Time, quarantine int) row.Change {
	c := row.Change{
		ID: r.ID, Version: r.Version, From: row.Executing, To: row.Pending, LeaseOver: true,
		Due: now, Attempt: r.Attempt, CrashCount: r.CrashCount, Execution: r.Execution, Late: r.Late,
	}
	switch {
	case !r.Executor.Popped():
		c.Attempt = max(0, r.Attempt-1)
		c.CrashCount++
		c.ErrorStack = fmt.Sprintf("lease lost: the executor is gone or was stuck; lost %d times", c.CrashCount)
		if c.CrashCount >= quarantine {
			c.To = row.Failed
			c.ErrorStack = fmt.Sprintf(
				"quarantined: the lease was lost %d times, so the task probably ends its executors", c.CrashCount)
		}
	case r.MaxAttempts > 0 && r.Attempt >= r.MaxAttempts:
		c.To = row.Failed
		c.ErrorStack = fmt.Sprintf("attempts used up: handed out and not finished within its lease, %d of %d",
			r.Attempt, r.MaxAttempts)
	default:
		c.ErrorStack = "handed out and not finished within its lease"
	}
	if !c.To.Final() && r.TickOf.Past(now) {
		c.To = row.Failed
		c.ErrorStack += "; no further attempt, because the next tick of its schedule is due"
	}
	if c.To.Final() && r.TickOf != nil && !r.Due.IsZero() {
		c.Due = min(now, r.Due) // ticks that were due later did not meet the run
	}
	c.Errors = row.AppendAttempt(r.Errors, row.Attempt{
		N: r.Attempt, Started: started.Std(), Finished: now.Std(), Error: c.ErrorStack,
		Executor: r.Executor.At(r.Process),
	})
	return c
}

// changed is the row as it is once the change has been applied.
func changed(r row.Row, c row.Change) row.Row {
	r.Status, r.Version = c.To, r.Version+1
	r.Attempt, r.CrashCount = c.Attempt, c.CrashCount
	r.Due = c.Due
	r.Executor, r.ErrorStack, r.Errors = c.Executor, c.ErrorStack, c.Errors
	return r
}
