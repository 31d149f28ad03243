// Package history records what a process asks a store for, and what it is told: each call and each return of a claim, a
// settle, a rescue, a cancel, a reschedule or a read. They are events of package journal, one for each task. Package
// linear checks whether the history of a task is linearizable.
package history

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// Recorder passes all calls on to a store and records those that change a task or see its owner. It does not record
// calls that search for tasks by their due time, and reads in a caller's transaction.
type Recorder struct {
	store.Store
	node  string
	share uint64
	write func(...journal.Event)
	calls atomic.Int64
}

// New returns a recorder of the node's calls. It records one of share tasks, by the id, the same ones at every node. It
// writes calls before they are made and returns before the caller gets them. What write was given must outlive the
// process.
func New(inner store.Store, node string, share int, write func(...journal.Event)) *Recorder {
	return &Recorder{Store: inner, node: node, share: uint64(max(share, 1)), write: write}
}

// records reports whether the task is among those that are recorded. Ids count up in their low bits, so those are
// mixed.
func (r *Recorder) records(id int64) bool {
	const golden = 0x9e3779b97f4a7c15
	return uint64(id)*golden>>32%r.share == 0
}

// call is one call of the store on its way.
type call struct {
	recorder *Recorder
	op       string
	asked    []journal.Event
}

// begin writes down what is asked for.
func (r *Recorder) begin(asked []journal.Event) *call {
	c := &call{recorder: r, asked: asked}
	if len(asked) == 0 {
		return c
	}
	c.op = fmt.Sprintf("%s store %d", r.node, r.calls.Add(1))
	r.stamp(c.op, asked)
	return c
}

// told writes down the answer for each task.
func (c *call) told(answer func(asked *journal.Event) journal.Event) {
	if len(c.asked) == 0 {
		return
	}
	answers := make([]journal.Event, len(c.asked))
	for i := range c.asked {
		answers[i] = answer(&c.asked[i])
		answers[i].Kind, answers[i].ID = journal.StoreReturn, c.asked[i].ID
	}
	c.recorder.stamp(c.op, answers)
}

// all writes down one answer for all tasks.
func (c *call) all(class journal.Class) {
	c.told(func(*journal.Event) journal.Event { return journal.Event{Error: class} })
}

func (r *Recorder) stamp(op string, events []journal.Event) {
	now := time.Now().UTC()
	for i := range events {
		events[i].At, events[i].Node, events[i].Op = now, r.node, op
	}
	r.write(events...)
}

// asking makes an event of each item whose task is recorded.
func asking[T any](r *Recorder, items []T, event func(T) journal.Event) []journal.Event {
	var asked []journal.Event
	for _, item := range items {
		if e := event(item); r.records(e.ID) {
			asked = append(asked, e)
		}
	}
	return asked
}

// failed is what an error says of a write: that nothing was done, or nothing at all.
func failed(err error) journal.Class {
	if row.ClassOf(err) == row.ClassUnknown {
		return journal.Unknown
	}
	return journal.Refused
}

// Insert implements [store.Saver]. A duplicate is no proof that this very row was not stored: the statement may have
// been sent twice. Whether a transaction is committed, the store does not learn.
func (r *Recorder) Insert(ctx context.Context, tx store.Tx, rows []row.Row) error {
	c := r.begin(asking(r, rows, asInsert))
	err := r.Store.Insert(ctx, tx, rows)
	switch {
	case err == nil && tx == nil:
		c.all(journal.OK)
	case err == nil, row.ClassOf(err) == row.ClassDuplicate:
		c.all(journal.Unknown)
	default:
		c.all(failed(err))
	}
	return err
}

func (r *Recorder) Get(ctx context.Context, tx store.Tx, ids []int64) ([]row.Row, []row.Broken, error) {
	if tx != nil {
		return r.Store.Get(ctx, tx, ids)
	}
	c := r.look(ids)
	rows, broken, err := r.Store.Get(ctx, nil, ids)
	seen := make([]row.State, len(rows))
	for i := range rows {
		w := &rows[i]
		seen[i] = row.State{ID: w.ID, Version: w.Version, Status: w.Status, Executor: w.Executor}
	}
	c.saw(seen, broken, err)
	return rows, broken, err
}

func (r *Recorder) States(ctx context.Context, ids []int64) ([]row.State, error) {
	c := r.look(ids)
	states, err := r.Store.States(ctx, ids)
	c.saw(states, nil, err)
	return states, err
}

func (r *Recorder) look(ids []int64) *call {
	return r.begin(asking(r, ids, func(id int64) journal.Event {
		return journal.Event{Kind: journal.StoreRead, ID: id}
	}))
}

// saw writes down what a read has seen. A row that cannot be decoded shows nothing.
func (c *call) saw(states []row.State, broken []row.Broken, err error) {
	if err != nil {
		c.all(journal.Refused)
		return
	}
	seen := make(map[int64]journal.Event, len(states)+len(broken))
	for _, s := range states {
		seen[s.ID] = journal.Event{Version: s.Version, Status: s.Status.String(), Executor: s.Executor.String()}
	}
	for _, b := range broken {
		seen[b.ID] = journal.Event{Error: journal.Refused}
	}
	c.told(func(asked *journal.Event) journal.Event { return seen[asked.ID] })
}

func (r *Recorder) Claim(ctx context.Context, claim row.Claim) (row.Claimed, error) {
	c := r.begin(asking(r, claim.Rows, func(ref row.Ref) journal.Event {
		return journal.Event{
			Kind: journal.StoreClaim, ID: ref.ID, Version: ref.Version, Executor: claim.Executor.String(),
		}
	}))
	claimed, err := r.Store.Claim(ctx, claim)
	if err != nil {
		c.all(failed(err))
		return claimed, err
	}
	won := map[int64]int64{}
	for i := range claimed.Rows {
		won[claimed.Rows[i].ID] = claimed.Rows[i].Version
	}
	for _, b := range claimed.Broken {
		won[b.ID] = b.Version
	}
	c.told(func(asked *journal.Event) journal.Event {
		if version, is := won[asked.ID]; is {
			return journal.Event{Version: version}
		}
		return journal.Event{Error: journal.WrongStatus}
	})
	return claimed, nil
}

// asChange is what a change asks for.
func asChange(ch row.Change) journal.Event {
	return journal.Event{
		Kind: journal.StoreChange, ID: ch.ID, Version: ch.Version, Status: ch.From.String(), Detail: ch.To.String(),
		Executor: ch.Executor.String(),
	}
}

func asInsert(w row.Row) journal.Event { return journal.Event{Kind: journal.StoreInsert, ID: w.ID} }

// Decide implements [store.Schedules]. A refusal is no proof that nothing was done: the call may have been sent twice.
func (r *Recorder) Decide(ctx context.Context, decisions []row.Decision) (bool, error) {
	var asked []journal.Event
	for _, d := range decisions {
		asked = append(asked, asking(r, d.Changes, asChange)...)
		asked = append(asked, asking(r, d.Insert, asInsert)...)
	}
	c := r.begin(asked)
	applied, err := r.Store.Decide(ctx, decisions)
	switch {
	case applied:
		c.all(journal.OK)
	case err == nil, row.ClassOf(err) == row.ClassDuplicate:
		c.all(journal.Unknown)
	default:
		c.all(failed(err))
	}
	return applied, err
}

// Update implements [store.Leaser]. The store tells how many changes applied, so an answer between none and all of them
// says of no task that it was changed.
func (r *Recorder) Update(ctx context.Context, tx store.Tx, changes []row.Change) (int, error) {
	bounded := map[int64]bool{} // by the end of a lease, which moves without a version
	c := r.begin(asking(r, changes, func(ch row.Change) journal.Event {
		bounded[ch.ID] = ch.LeaseOver || !ch.LeaseBy.IsZero()
		return asChange(ch)
	}))
	applied, err := r.Store.Update(ctx, tx, changes)
	switch {
	case err != nil:
		c.all(failed(err))
	case tx != nil:
		c.all(journal.Unknown) // the store does not learn whether it is committed
	case applied == len(changes):
		c.all(journal.OK)
	default:
		c.told(func(asked *journal.Event) journal.Event {
			if bounded[asked.ID] {
				return journal.Event{Error: journal.Unknown}
			}
			return journal.Event{Error: journal.WrongStatus}
		})
	}
	return applied, err
}

// Discard implements [store.Leaser]. It does not tell which of the rows it has met.
func (r *Recorder) Discard(ctx context.Context, broken []row.Broken) (int, error) {
	c := r.begin(asking(r, broken, func(b row.Broken) journal.Event {
		return journal.Event{
			Kind: journal.StoreChange, ID: b.ID, Version: b.Version, Status: b.Status.String(),
			Detail: row.Failed.String(),
		}
	}))
	n, err := r.Store.Discard(ctx, broken)
	if err != nil {
		c.all(failed(err))
	} else {
		c.all(journal.WrongStatus)
	}
	return n, err
}

// Renew implements [store.Leaser]. A lease that stays where it is changes nothing that is recorded.
func (r *Recorder) Renew(ctx context.Context, leases []row.Lease) ([]row.State, error) {
	var moved []row.Lease
	ids := make([]int64, len(leases))
	for i, l := range leases {
		ids[i] = l.ID
		if l.Executor != (row.Executor{}) {
			moved = append(moved, l)
		}
	}
	c := r.begin(asking(r, moved, func(l row.Lease) journal.Event {
		return journal.Event{Kind: journal.StoreRenew, ID: l.ID, Version: l.Version, Executor: l.Executor.String()}
	}))
	seeing := r.look(ids)
	states, err := r.Store.Renew(ctx, leases)
	seeing.saw(states, nil, err)
	if err != nil {
		c.all(failed(err))
	} else {
		c.all(journal.WrongStatus) // as it may have been: the states tell
	}
	return states, err
}
