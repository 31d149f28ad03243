package lease

import (
	"context"
	"errors"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/run"
	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/lifecycle/batch"
	"github.com/delaytask/delaytask/internal/row"
)

// tryEnd sends the ends in one statement, answers what is known then, and returns the rest. Of several callers it sends
// none that may wait for a locked range: each tries those alone.
func (q *Ends) tryEnd(ctx context.Context, asked []*ending, ofSeveral bool) (again []*ending) {
	open, again := q.gather(ctx, asked)
	if len(open) == 0 {
		return again
	}
	now, err := q.Certain(ctx)
	if err != nil {
		return q.orClosed(unanswered(append(open, again...), err))
	}
	for _, e := range open {
		if e.unsure {
			continue // the same result must be sent, because the first may still be applied
		}
		reg, _ := q.cfg.Registry.Lookup(e.row.Tag)
		e.result = e.decide(q.attemptOfRow(e.row), &reg, now)
	}
	apart, open := table.SplitApart(q.Table, open, (*ending).tag)
	for _, ends := range apart {
		if ofSeveral {
			again = append(again, unanswered(ends, errRange)...)
		} else {
			again = append(q.sendPages(ctx, ends), again...)
		}
	}
	return append(q.sendPages(ctx, open), again...)
}

var errRange = errors.New("another transaction has locked a range of the tag's rows")

func (q *Ends) sendPages(ctx context.Context, open []*ending) (again []*ending) {
	size := func(e **ending) int { return (*e).result.Size() }
	for _, page := range batch.Pages(open, max(len(open), 1), run.SettleBytes, size) {
		again = append(q.sendEnds(ctx, page), again...)
	}
	return again
}

// orClosed returns open, or nothing to try again when the engine has ended.
func (q *Ends) orClosed(open []*ending) []*ending {
	if q.Life.Err() != nil {
		return nil
	}
	return open
}

// sendEnds tries endings whose results are decided, once.
func (q *Ends) sendEnds(ctx context.Context, open []*ending) (again []*ending) {
	changes := make([]row.Change, len(open))
	for i, e := range open {
		changes[i] = e.result.Change
	}
	applied, err := q.Update(ctx, changes)
	if err == nil && applied == len(open) {
		for _, e := range open {
			q.ended(e)
		}
		return nil
	}
	unanswered(open, err)
	switch {
	case err == nil && len(open) == 1:
		q.compare(ctx, open[0].row)
		return open
	case err == nil:
		return q.readEnds(ctx, open)
	}
	final := func([]*ending) []*ending { return nil }
	retry := table.Policy[*ending]{
		Locked: func(open []*ending) []*ending { return q.leaveLocked(ctx, open) },
		Lost: func(open []*ending) []*ending {
			for _, e := range open {
				e.unsure = true
			}
			return q.readEnds(ctx, open)
		},
		Operator: final,
		Refused: func(open []*ending) []*ending {
			return table.EachAlone(open, func(one []*ending) []*ending { return q.sendEnds(ctx, one) })
		},
	}
	if len(open) == 1 {
		retry.Refused = final
	}
	return retry.After(open, err)
}

// unanswered notes the error that the try has met.
func unanswered(open []*ending, err error) []*ending {
	for _, e := range open {
		e.err = err
	}
	return open
}

// leaveLocked sends the rows that no other transaction holds. Where it holds none, it may have locked a range.
func (q *Ends) leaveLocked(ctx context.Context, open []*ending) (again []*ending) {
	held, free, _ := table.SplitLocked(ctx, q.Table, open, (*ending).rowID)
	if len(held) == 0 {
		table.MayWait(q.Table, open, (*ending).tag)
	}
	if len(held) == 0 || len(free) == 0 {
		return open
	}
	return append(held, q.sendEnds(ctx, free)...)
}

func (e *ending) rowID() int64 { return e.id }

func (e *ending) tag() string { return e.row.Tag }

// readEnds finds out which of the rows the statement has ended.
func (q *Ends) readEnds(ctx context.Context, open []*ending) (again []*ending) {
	states, err := q.ReadBack(ctx, "reading back what holders ended", row.IDsOf(open, (*ending).rowID))
	if err != nil {
		return open
	}
	for _, e := range open {
		s, exists := states[e.id]
		switch {
		case exists && e.isSeen(s):
			q.ended(e)
		default:
			moved := !exists || s.Version != e.version || s.Status != row.Executing
			if h := q.holders.get(e.id, e.version); h != nil && moved {
				q.holders.letGo(h) // the next look finds what the table says
			}
			again = append(again, e)
		}
	}
	return again
}

// isSeen reports whether the row is as the last try would have left it. A rescue would have taken the executor away,
// and another holder of the lease token would have written another time.
func (e *ending) isSeen(s row.State) bool {
	c := e.result.Change
	same := s.Executor.ForPop() == c.Executor.ForPop() // whether or not the task was handed over meanwhile
	return same && s.Version == c.Version+1 && s.Status == c.To && s.Due == c.Due
}

// gather finds the rows, answers for those that the version does not hold, and returns the rest. A second end of a row
// waits until the first has its answer.
func (q *Ends) gather(ctx context.Context, asked []*ending) (open, again []*ending) {
	ids, taken := []int64(nil), map[int64]bool{}
	for _, e := range asked {
		if taken[e.id] {
			again = append(again, e)
			continue
		}
		taken[e.id] = true
		open = append(open, e)
		e.row = nil
		if h := q.holders.get(e.id, e.version); h != nil && !e.unsure {
			e.row = &h.attempt.Row
			continue
		}
		ids = append(ids, e.id)
	}
	if len(ids) == 0 {
		return open, again
	}
	rows, broken, err := q.Store.Get(ctx, nil, ids)
	if err != nil {
		missing, inHand := batch.Split(open, func(e *ending) bool { return e.row == nil })
		return inHand, q.unread(missing, again, err)
	}
	q.Discard(broken)
	byID := make(map[int64]*row.Row, len(rows))
	for i := range rows {
		byID[rows[i].ID] = &rows[i]
	}
	return slices.DeleteFunc(open, func(e *ending) bool { return e.row == nil && !q.read(e, byID[e.id]) }), again
}

// unread adds what could not be read to again, where another try can help.
func (q *Ends) unread(missing, again []*ending, err error) []*ending {
	unanswered(missing, err)
	if !table.MayRetry(err) {
		return again
	}
	return append(missing, again...)
}

// read takes over the row, and reports whether the version holds it. Otherwise it sets the answer.
func (q *Ends) read(e *ending, r *row.Row) bool {
	switch {
	case r == nil:
		e.err = delaytask.ErrNotFound
	case e.unsure && e.isSeen(row.State{Version: r.Version, Status: r.Status, Due: r.Due, Executor: r.Executor}):
		e.row = r
		q.ended(e)
	case r.Status != row.Executing || r.Version != e.version:
		e.err = delaytask.ErrLeaseLost
		if h := q.holders.get(e.id, e.version); h != nil {
			q.holders.letGo(h)
		}
	default:
		e.row = r
		return true
	}
	return false
}

// compare lets go of a task that is another's by now, so that the next look finds what the table says.
func (q *Ends) compare(ctx context.Context, r *row.Row) {
	states, err := q.Store.States(ctx, []int64{r.ID})
	if err != nil {
		return
	}
	if len(states) == 1 && states[0].Version == r.Version && states[0].Status == row.Executing {
		return
	}
	if h := q.holders.get(r.ID, r.Version); h != nil {
		q.holders.letGo(h)
	}
}

// attemptOfRow returns what is known here of the task's attempt.
func (q *Ends) attemptOfRow(r *row.Row) *run.Attempt {
	if h := q.holders.get(r.ID, r.Version); h != nil {
		return h.attempt
	}
	return q.pool.Attempts.OfRow(r, q.Now())
}

// ended does what follows the end of a task that was handed out.
func (q *Ends) ended(e *ending) {
	r := e.row
	e.err = nil
	if a := q.pool.Attempts.Get(r.ID); a != nil && a.Row.Version == e.version {
		a.Answer()
	}
	if h := q.holders.get(r.ID, e.version); h != nil { // after that, because a hand-over may be moving the task to here
		q.holders.letGo(h)
	}
	q.pool.Settler.Stored(r, r.Expected, &e.result)
}
