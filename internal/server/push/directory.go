package push

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor/webhook"
)

// target is a receiver that can be called.
type target struct {
	row.Receiver
	signing []webhook.Secret
}

// directory is who serves what at one moment: by tag, then by application. Under the application "" stand all of the
// tag.
type directory map[string]map[string]*ring

// ring is those among whom one pair of tag and application goes round.
type ring struct {
	targets []*target
	turn    *atomic.Uint64
}

// newDirectory goes on with the turns of the directory before it: it is made anew all the time.
func newDirectory(targets []*target, before directory) directory {
	d := directory{}
	for _, to := range targets {
		for _, tag := range to.Tags {
			if d[tag] == nil {
				d[tag] = map[string]*ring{}
			}
			for _, app := range []string{"", to.App} {
				c := d[tag][app]
				if c == nil {
					c = &ring{turn: new(atomic.Uint64)}
					if old := before[tag][app]; old != nil {
						c.turn = old.turn
					}
					d[tag][app] = c
				}
				c.targets = append(c.targets, to)
			}
		}
	}
	return d
}

// find returns those who may get a task of the tag and the application, "" when it has none, in the order in which to
// try them.
func (d directory) find(tag, app string) []*target {
	c := d[tag][app]
	if c == nil {
		return nil
	}
	first := int((c.turn.Add(1) - 1) % uint64(len(c.targets)))
	return slices.Concat(c.targets[first:], c.targets[:first])
}

// targets returns those of the receivers that can be called, and why others cannot.
func (r *Registry) targets(receivers []row.Receiver, now row.Time) (all []*target, closed map[int64]error) {
	closed = map[int64]error{}
	for _, w := range receivers {
		to := &target{Receiver: w}
		if w.Secret != nil {
			s, err := r.open(w)
			if err == nil {
				to.signing, err = s.signing(now)
			}
			if err != nil { // its calls would be refused, or worse, be taken without a signature
				closed[w.ID] = err
				continue
			}
		}
		all = append(all, to)
	}
	return all, closed
}

// Explain says that nobody serves a pending task because of its application. Otherwise the Reason is "", and the
// scheduler knows more.
func (r *Registry) Explain(ctx context.Context, task *delaytask.TaskRow) (delaytask.Explanation, error) {
	app := task.App()
	if app == "" || task.Status != delaytask.Pending || r.reserved(task.Tag) {
		return delaytask.Explanation{}, nil
	}
	receivers, reading, err := r.Store.Receivers(ctx)
	if err != nil {
		return delaytask.Explanation{}, err
	}
	receivers = slices.DeleteFunc(receivers, func(w row.Receiver) bool { return !slices.Contains(w.Tags, task.Tag) })
	others := len(receivers)
	receivers = slices.DeleteFunc(receivers, func(w row.Receiver) bool { return w.App != app })
	others -= len(receivers)
	targets, closed := r.targets(receivers, reading.Time)
	if len(targets) > 0 {
		return delaytask.Explanation{}, nil
	}
	app = row.Clip(app, maxApp)
	e := delaytask.Explanation{Task: *task, Reason: delaytask.ReasonUnserved}
	e.Task.Body = nil
	switch {
	case len(closed) > 0:
		e.Text = fmt.Sprintf("A receiver of the application %s is registered for the tag %s, but this server cannot "+
			"open its secret: DELAYTASK_SECRET is not what it was. Let the receiver register again.", app, task.Tag)
	case others > 0:
		e.Text = fmt.Sprintf("No live receiver of the application %s serves the tag %s; it is not given to those of "+
			"other applications.", app, task.Tag)
	default:
		e.Text = fmt.Sprintf("No live receiver of the application %s serves the tag %s.", app, task.Tag)
	}
	return e, nil
}
