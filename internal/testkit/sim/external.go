package sim

import (
	"fmt"
	"time"

	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/testkit/journal"
	"github.com/delaytask/delaytask/processor"
)

// outsider saves tasks through any node, under ids of his own, and survives their crashes: he saves again until he
// knows.
type outsider struct {
	world *world
	id    int
	name  string
	ids   *cluster.IDs
	n     int
}

func (w *world) newOutsider(id int) *outsider {
	return &outsider{world: w, id: id, name: fmt.Sprintf("outsider %d", id), ids: cluster.NewIDs(cluster.RandomNode(), time.Now)}
}

func (o *outsider) work() {
	w := o.world
	for ; ; o.n++ {
		d := w.roll("outsider", o.id, o.n)
		if !wait(d.about(w.opEvery), w.over) || time.Since(begins) > w.faults+w.drain-quiet {
			return
		}
		task := w.task(d, fmt.Sprintf("%s op %d", o.name, o.n))
		task.ID = o.ids.Next()
		for try := 0; try < 40 && o.save(d, task, try) == journal.Unknown; try++ {
			if !wait(d.between(0, time.Second), w.over) {
				return
			}
		}
	}
}

// save tries once, and returns what is known then.
func (o *outsider) save(d die, task processor.Save, try int) journal.Class {
	w := o.world
	l, e := w.somebody(d)
	if e == nil {
		return journal.Unknown
	}
	ctx, cancel := w.context(l, patience(d))
	defer cancel()
	op := fmt.Sprintf("save %s try %d", task.Body, try)
	w.note(o.name, journal.CallSave, call(op, task, l.ear))
	id, _, err := e.Save(ctx, task)
	id, class := saved(id, err)
	select {
	case <-l.gone:
		id, class = task.ID, journal.Unknown // whatever the node answered has not arrived
	default:
	}
	w.note(o.name, journal.ReturnSave, journal.Event{Op: op, ID: id, Error: class, Detail: text(err)})
	if class == journal.OK {
		w.accepted(id)
	}
	return class
}
