package sim

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/processor"
)

// external is a client outside of the nodes. It saves tasks through any of them, under ids of its own, and survives
// their crashes: it saves again until it knows the outcome.
type external struct {
	world *world
	id    int
	name  string
	ids   *cluster.IDs
	n     int
}

func (w *world) newExternal(id int) *external {
	ids := cluster.NewIDs(cluster.RandomNode(), time.Now)
	return &external{world: w, id: id, name: fmt.Sprintf("external client %d", id), ids: ids}
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
func (e *external) save(d draw, task processor.Save, try int) journal.Class {
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
