package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// client is code of a program that uses the library in its own process. It ends with the process.
type client struct {
	*life
	id int
	n  int // operations so far
}

// poison begins the body of a task that crashes its process.
const poison = "poison"

// quiet is how long before the end clients stop asking for anything new.
const quiet = 20 * time.Second

func (c *client) work() {
	w := c.world
	for ; ; c.n++ {
		d := w.draw("client", c.slot, c.number, c.id, c.n)
		if !wait(d.about(w.opEvery), c.gone) || time.Since(begins) > w.faults+w.drain-quiet {
			return
		}
		switch k := d.IntN(100); {
		case k < 60:
			c.save(d, 1)
		case k < 66:
			c.save(d, 2+d.IntN(20))
		case k < 76:
			c.change(d, journal.CallCancel, journal.ReturnCancel, func(ctx context.Context, id int64) error {
				_, err := c.engine.Cancel(ctx, nil, control.Ref{ID: id}, d.chance(.3))
				return err
			})
		case k < 86:
			c.change(d, journal.CallReschedule, journal.ReturnReschedule, func(ctx context.Context, id int64) error {
				delay := d.between(0, 6*time.Second)
				_, err := c.engine.Reschedule(ctx, nil, control.Ref{ID: id}, delay, time.Time{}, nil)
				return err
			})
		case k < 95:
			c.change(d, journal.CallRetry, journal.ReturnRetry, func(ctx context.Context, id int64) error {
				return c.engine.Retry(ctx, control.Ref{ID: id})
			})
		default:
			c.pause(d)
		}
	}
}

func (c *client) op() string { return fmt.Sprintf("%s client %d op %d", c.name, c.id, c.n) }

// save stores tasks, and saves those again whose outcome is not known.
func (c *client) save(d draw, n int) {
	w := c.world
	tasks := make([]delaytask.Save, n)
	for i := range tasks {
		tasks[i] = w.task(d, fmt.Sprintf("%s.%d", c.op(), i))
		if d.chance(.2) {
			tasks[i].At, tasks[i].Delay = c.listener.earliestTime().Add(tasks[i].Delay), 0
		}
	}
	if c.slot == 0 && c.id == 0 && c.number == 0 && c.n < w.poison {
		tasks[0].Body, tasks[0].Delay, tasks[0].At = []byte(poison+c.op()), 0, time.Time{}
		tasks[0].Tag, tasks[0].TTR = tags[0], time.Second
	}
	for try := 0; len(tasks) > 0 && try < 5; try++ {
		ctx, cancel := w.context(c.life, patience(d))
		tasks = c.saveOnce(ctx, tasks, try)
		cancel()
		if len(tasks) > 0 && !wait(d.between(0, time.Second), c.gone) {
			return
		}
	}
}

// saveOnce returns the tasks whose outcome is unknown, with the ids to save them again with.
func (c *client) saveOnce(ctx context.Context, tasks []delaytask.Save, try int) (unknown []delaytask.Save) {
	w := c.world
	ops := make([]string, len(tasks))
	for i, task := range tasks {
		ops[i] = fmt.Sprintf("save %s try %d", task.Body, try)
		w.note(c.name, journal.CallSave, call(ops[i], task, c.listener))
	}
	for i, r := range c.results(ctx, tasks) {
		task := tasks[i]
		id, class := saved(r.ID, r.Err)
		w.note(c.name, journal.ReturnSave, journal.Event{Op: ops[i], ID: id, Error: class, Detail: text(r.Err)})
		switch class {
		case journal.OK:
			w.accepted(id)
		case journal.Unknown:
			task.ID = id
			unknown = append(unknown, task)
		}
	}
	return unknown
}

// results saves one task alone, and several in one call. An error before anything is sent is the answer to each of
// them: the outcome of a task that is saved again stays unknown.
func (c *client) results(ctx context.Context, tasks []delaytask.Save) []delaytask.SaveResult {
	if len(tasks) == 1 {
		id, _, err := c.engine.Save(ctx, tasks[0])
		return []delaytask.SaveResult{{ID: id, Err: err}}
	}
	results, err := c.engine.SaveAll(ctx, tasks)
	if results == nil {
		results = make([]delaytask.SaveResult, len(tasks))
		for i, task := range tasks {
			results[i].Err = err
			if task.ID != 0 {
				results[i].Err = &delaytask.OutcomeUnknownError{ID: task.ID, Err: err}
			}
		}
	}
	return results
}

// task is one to be saved. Most are due within seconds.
func (w *world) task(d draw, body string) delaytask.Save {
	delay := oneOf(d, 0, d.between(0, time.Second), d.between(time.Second, 3*time.Second),
		d.between(2*time.Second, 8*time.Second))
	if d.chance(.02) {
		delay = time.Hour
	}
	task := delaytask.Save{
		Tag: oneOf(d, tags[0], tags[0], tags[1], evenTags[0], popTags[0]), Body: []byte(body),
		Delay: delay.Round(time.Millisecond), Priority: d.IntN(5),
	}
	if d.chance(.2) {
		task.Key = fmt.Sprintf("key %d", d.IntN(4))
	}
	if d.chance(.3) {
		task.TTR = d.between(time.Second, longestTTR)
	}
	return task
}

// call is the event of a save that is asked for. A delay counts from now, by any clock that the process may believe in.
// A moment is the same by every clock.
func call(op string, task delaytask.Save, clock *listener) journal.Event {
	asked := journal.Event{
		Op: op, ID: task.ID, Tag: task.Tag, Key: task.Key, Body: string(task.Body), Expected: task.At,
	}
	if task.At.IsZero() {
		asked.Clock = clock.earliestTime().UTC()
		asked.Expected = asked.Clock.Add(task.Delay)
	}
	return asked
}

// change asks for a change of some task.
func (c *client) change(d draw, called, returned journal.Kind, change func(context.Context, int64) error) {
	w := c.world
	id := w.someTask(d)
	if id == 0 {
		return
	}
	ctx, cancel := w.context(c.life, patience(d))
	defer cancel()
	w.note(c.name, called, journal.Event{Op: c.op(), ID: id})
	err := change(ctx, id)
	w.note(c.name, returned, journal.Event{Op: c.op(), ID: id, Error: classOf(err), Detail: text(err)})
}

// pause pauses a tag for a moment, in good time before the faults end.
func (c *client) pause(d draw) {
	w := c.world
	if time.Since(begins) > w.faults-9*time.Second {
		return
	}
	ctx, cancel := w.context(c.life, 5*time.Second)
	defer cancel()
	tag := tags[1]
	w.note(c.name, journal.CallPause, journal.Event{Op: c.op(), Tag: tag})
	err := c.engine.Pause(ctx, tag, "")
	w.note(c.name, journal.ReturnPause, journal.Event{Op: c.op(), Tag: tag, Error: classOf(err)})
	w.rest(d.between(0, 2*time.Second))
	w.note(c.name, journal.CallResume, journal.Event{Op: c.op(), Tag: tag})
	w.note(c.name, journal.ReturnResume, journal.Event{Op: c.op(), Tag: tag, Error: classOf(c.engine.Resume(ctx, tag))})
}

// patience is how long a caller waits.
func patience(d draw) time.Duration {
	return oneOf(d, 20*time.Millisecond, 300*time.Millisecond, 2*time.Second, 15*time.Second)
}

// saved is the answer to a save. Every error but an unknown outcome says that nothing was stored.
func saved(id int64, err error) (int64, journal.Class) {
	if unknown, ok := errors.AsType[*delaytask.OutcomeUnknownError](err); ok {
		return unknown.ID, journal.Unknown
	}
	class := classOf(err)
	if class == journal.Unknown {
		class = journal.Refused
	}
	return id, class
}

// classOf is the answer to any other operation.
func classOf(err error) journal.Class {
	switch {
	case err == nil:
		return journal.OK
	case errors.Is(err, delaytask.ErrDuplicate):
		return journal.Duplicate
	case errors.Is(err, delaytask.ErrNotFound):
		return journal.NotFound
	case errors.Is(err, delaytask.ErrLeaseLost):
		return journal.LeaseLost
	case errors.Is(err, delaytask.ErrFinished), errors.Is(err, delaytask.ErrNotPending),
		errors.Is(err, delaytask.ErrNotFailed):
		return journal.WrongStatus
	case row.ClassOf(err) != row.ClassUnknown:
		return journal.Refused
	default:
		return journal.Unknown
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// external is a client outside of the nodes. It saves tasks through any of them, under ids of its own, and survives
// their crashes: it saves again until it knows the outcome.
type external struct {
	world *world
	id    int
	name  string
	ids   *ids.Source
	n     int
}

func (w *world) newExternal(id int) *external {
	source := ids.NewSource(ids.RandomNode(), time.Now)
	return &external{world: w, id: id, name: fmt.Sprintf("external client %d", id), ids: source}
}

func (e *external) work() {
	w := e.world
	for ; ; e.n++ {
		d := w.draw("external client", e.id, e.n)
		if !wait(d.about(w.opEvery), w.over) || time.Since(begins) > w.faults+w.drain-quiet {
			return
		}
		task := w.task(d, fmt.Sprintf("%s op %d", e.name, e.n))
		task.ID = e.ids.Next()
		for try := 0; try < 40 && e.save(d, task, try) == journal.Unknown; try++ {
			if !wait(d.between(0, time.Second), w.over) {
				return
			}
		}
	}
}

// save tries once, and returns what is known then.
func (e *external) save(d draw, task delaytask.Save, try int) journal.Class {
	w := e.world
	l, eng := w.anyLife(d)
	if eng == nil {
		return journal.Unknown
	}
	ctx, cancel := w.context(l, patience(d))
	defer cancel()
	op := fmt.Sprintf("save %s try %d", task.Body, try)
	w.note(e.name, journal.CallSave, call(op, task, l.listener))
	id, _, err := eng.Save(ctx, task)
	id, class := saved(id, err)
	select {
	case <-l.gone:
		id, class = task.ID, journal.Unknown // the answer of the node has not arrived
	default:
	}
	w.note(e.name, journal.ReturnSave, journal.Event{Op: op, ID: id, Error: class, Detail: text(err)})
	if class == journal.OK {
		w.accepted(id)
	}
	return class
}
