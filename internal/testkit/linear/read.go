package linear

import (
	"slices"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// theEnd is the kind of the operation after which what is left of unknown outcome has never happened.
const theEnd journal.Kind = "end"

// op is one operation on one task: a write that is guarded by what it expects, or a read.
type op struct {
	kind             journal.Kind
	called, returned int64 // positions in the journal

	guard state // what a write expects; the executor is left out for a renewal and a claim
	after state // what a write makes of that, or what a read saw
	sure  bool  // it was done: the guard held
	open  bool  // it may be done at any time from the call on, or never

	behind bool  // it takes part where members may be behind one another
	floor  int64 // the lowest version that such a read may see
}

type history struct {
	ops      []*op
	events   []*journal.Event
	inserted bool // its insert was recorded, so there was no such task before
}

// told is the history as the journal has it.
func (h *history) told() []journal.Event {
	events := make([]journal.Event, len(h.events))
	for i, e := range h.events {
		events[i] = *e
	}
	return events
}

// read sorts the recorded calls by their tasks. The position of an event in the journal is its time.
func read(events []journal.Event, behind bool) map[int64]*history {
	type name struct {
		op string
		id int64
	}
	histories := map[int64]*history{}
	open := map[name]*op{}
	known := map[witness]int64{}
	whole := slices.ContainsFunc(events, func(e journal.Event) bool { return e.Kind == journal.StoreWhole })
	for i := range events {
		e := &events[i]
		at := int64(i)
		switch e.Kind {
		case journal.StoreInsert, journal.StoreClaim, journal.StoreChange, journal.StoreRenew, journal.StoreRead:
			h := histories[e.ID]
			if h == nil {
				h = &history{}
				histories[e.ID] = h
			}
			o := asked(e)
			o.called, o.behind, o.floor = at, behind, known[witness{e.Node, e.ID}]
			h.ops = append(h.ops, o)
			h.events = append(h.events, e)
			h.inserted = h.inserted || e.Kind == journal.StoreInsert
			open[name{e.Op, e.ID}] = o
		case journal.StoreReturn:
			if o := open[name{e.Op, e.ID}]; o != nil {
				o.told(e, whole)
				o.returned = at
				if !o.open && o.kind != "" {
					k := witness{e.Node, e.ID}
					known[k] = max(known[k], o.learned())
				}
				histories[e.ID].events = append(histories[e.ID].events, e)
			}
		case journal.Row:
			if h := histories[e.ID]; h != nil {
				h.ops = append(h.ops, &op{kind: journal.StoreRead, called: at, returned: at, after: seen(e)})
				h.events = append(h.events, e)
			}
		}
	}
	for id, h := range histories {
		h.ops = worth(h.ops)
		if len(h.ops) == 0 {
			delete(histories, id)
		}
	}
	return histories
}

// worth leaves out what tells nothing: what had no effect, and reads without an answer.
func worth(ops []*op) []*op {
	var kept []*op
	for _, o := range ops {
		if o.kind != "" && (o.kind != journal.StoreRead || !o.open) {
			kept = append(kept, o)
		}
	}
	return kept
}

// asked is an operation whose return is not known.
func asked(e *journal.Event) *op {
	o := &op{kind: e.Kind, open: true}
	switch e.Kind {
	case journal.StoreInsert:
		o.guard, o.after = state{status: absent}, state{status: pending}
	case journal.StoreClaim:
		o.guard, o.after = state{status: pending, version: e.Version}, state{executing, e.Version + 1, e.Executor}
	case journal.StoreChange:
		o.guard, o.after = state{status: e.Status, version: e.Version}, state{e.Detail, e.Version + 1, e.Executor}
	case journal.StoreRenew:
		o.guard, o.after = state{status: executing, version: e.Version}, state{executing, e.Version, e.Executor}
	}
	return o
}

// told takes the answer in.
func (o *op) told(e *journal.Event, whole bool) {
	switch {
	case e.Error == journal.Refused:
		o.kind = ""
	case e.Error == journal.Unknown:
	case o.kind == journal.StoreRead:
		o.after, o.open = seen(e), false
		if e.Status == "" && !whole {
			o.kind = ""
		}
	case e.Error == journal.WrongStatus:
		o.open = o.kind == journal.StoreClaim && !whole
	default:
		o.sure, o.open = true, false
		if o.kind == journal.StoreClaim {
			o.after.version = e.Version
		}
	}
}

func seen(e *journal.Event) state {
	if e.Status == "" {
		return state{status: absent}
	}
	return state{e.Status, e.Version, e.Executor}
}
