package events

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"

	"github.com/delaytask/delaytask/internal/engine/table"
	"github.com/delaytask/delaytask/internal/row"
)

// putBackPage is how many rows are put back by one statement. They are read whole before, with bodies of up to 1 MiB.
const putBackPage = 100

// putBack is a row that goes back to pending.
type putBack struct {
	row    row.Row
	change row.Change
}

func (p putBack) id() int64 { return p.change.ID }

func (p putBack) tag() string { return p.row.Tag }

// putBackCall is a page of rows that a caller puts back.
type putBackCall struct {
	seen []row.State
	done []putBack
	err  error
	end  chan struct{}
}

func (c *putBackCall) rows() int { return len(c.seen) }

// PutBack puts executing rows back to pending without costing an attempt, as far as they are still as they were seen.
// It returns the rows as they are afterwards. Rows of a statement that fails stay as they are: who asked finds them
// again. Callers at the same time share statements: rows that come back one by one would be claimed so again.
func (e *Events) PutBack(seen []row.State, why string) (released []row.Row) {
	for page := range slices.Chunk(seen, putBackPage) {
		c := &putBackCall{seen: page, end: make(chan struct{})}
		if e.putBacks.Add(c) != nil { // the engine has ended; a rescue finds the rows
			break
		}
		<-c.end
		for i := range c.done {
			r, change := &c.done[i].row, &c.done[i].change
			e.Log.Info("released", "task", r.ID, "tag", r.Tag, "version", r.Version, "why", why)
			r.Status, r.Version, r.Due, r.Attempt = change.To, r.Version+1, change.Due, change.Attempt
			released = append(released, *r)
		}
		if c.err != nil {
			e.Failed("releasing", c.err)
		}
		if table.Fault(c.err) != nil {
			break
		}
	}
	return released
}

// putBackAll answers calls that share a statement.
func (e *Events) putBackAll(calls []*putBackCall) {
	var seen []row.State
	by := map[int64]*putBackCall{}
	for _, c := range calls {
		for _, s := range c.seen {
			if by[s.ID] == nil { // else another caller has seen the row as well, and hears of it
				by[s.ID] = c
				seen = append(seen, s)
			}
		}
	}
	done, err := e.putBackPage(seen)
	for _, back := range done {
		c := by[back.id()]
		c.done = append(c.done, back)
	}
	for _, c := range calls {
		if len(c.done) < len(c.seen) {
			c.err = err
		}
		close(c.end)
	}
}

func (e *Events) putBackPanicked(calls []*putBackCall, value any) {
	for _, c := range calls {
		c.err = fmt.Errorf("a release panicked: %v\n\n%s", value, debug.Stack())
		close(c.end)
	}
}

func (e *Events) putBackPage(seen []row.State) (done []putBack, err error) {
	versions := make(map[int64]int64, len(seen))
	for _, s := range seen {
		versions[s.ID] = s.Version
	}
	ctx, cancel := e.Call()
	defer cancel()
	rows, broken, err := e.Store.Get(ctx, nil, row.IDsOf(seen, func(s row.State) int64 { return s.ID }))
	if err != nil {
		return nil, err
	}
	e.Discard(broken)
	now := e.Now()
	var back []putBack
	for _, r := range rows {
		if r.Status != row.Executing || r.Version != versions[r.ID] {
			continue
		}
		// The lease was counted from the later of the claim and the due time that it took.
		change := table.ReleaseOf(&r, max(r.Due.Add(-r.TTR), now))
		if r.FirstStart() { // the task was handed to no processor
			change.Execution = 0
		}
		back = append(back, putBack{r, change})
	}
	return e.writeBack(ctx, back)
}

// writeBack returns the rows that were put back. Rows that other transactions hold are left out, and a row that the
// database refuses holds up no other.
func (e *Events) writeBack(ctx context.Context, back []putBack) (done []putBack, err error) {
	if len(back) == 0 {
		return nil, nil
	}
	changes := make([]row.Change, len(back))
	for i := range back {
		changes[i] = back[i].change
	}
	applied, err := e.Update(ctx, changes)
	switch {
	case err == nil && applied == len(back):
		return back, nil
	case err == nil:
		return e.findPutBack(ctx, back)
	case row.IsOneOf(err, row.ClassUnknown):
		done, _ = e.findPutBack(ctx, back)
		return done, err
	case len(back) == 1 || table.Fault(err) != nil:
		return nil, err
	case table.IsLocked(err):
		held, free, asked := table.SplitLocked(ctx, e.Table, back, putBack.id)
		if asked != nil {
			return nil, err
		}
		if len(held) > 0 {
			return e.writeBack(ctx, free)
		}
		tags := table.ByTag(back, putBack.tag)
		if len(tags) == 1 {
			return nil, err
		}
		return e.writeParts(ctx, tags)
	}
	return e.writeParts(ctx, table.Halves(back))
}

func (e *Events) writeParts(ctx context.Context, parts [][]putBack) (done []putBack, err error) {
	var failed []error
	for _, part := range parts {
		more, err := e.writeBack(ctx, part)
		done, failed = append(done, more...), append(failed, err)
	}
	return done, errors.Join(failed...)
}

// findPutBack finds out which rows a statement has put back that did not change all of them, or whose reply was lost.
func (e *Events) findPutBack(ctx context.Context, back []putBack) (done []putBack, err error) {
	found, err := e.Store.States(ctx, row.IDsOf(back, putBack.id))
	states := row.StatesByID(found)
	for _, b := range back {
		if s := states[b.id()]; s.Version == b.change.Version+1 && s.Status == b.change.To {
			done = append(done, b)
		}
	}
	return done, err
}
