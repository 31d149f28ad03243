package push

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor/webhook"
	"github.com/delaytask/delaytask/report"
)

// target is a receiver that can be called.
type target struct {
	row.Receiver
	signing []webhook.Secret
}

// directory lists the receivers at one moment: by tag, then by application. The application "" has all of the tag.
type directory map[string]map[string]*ring

// ring is the receivers that take turns for one pair of tag and application.
type ring struct {
	targets []*target
	turn    *atomic.Uint64
}

// newDirectory continues the turns of the directory before it, which it replaces at every reading.
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

// find returns the receivers for a task of the tag and the application, "" when it has none, in the order in which to
// try them.
func (d directory) find(tag, app string) []*target {
	c := d[tag][app]
	if c == nil {
		return nil
	}
	first := int((c.turn.Add(1) - 1) % uint64(len(c.targets)))
	return slices.Concat(c.targets[first:], c.targets[:first])
}

// targets returns the receivers that can be called, and why the others cannot.
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

// Explain reports when no receiver serves the application of a pending task. Otherwise the Reason is "", and the
// scheduler explains.
func (r *Registry) Explain(ctx context.Context, task *delaytask.TaskRow) (report.Explanation, error) {
	app := task.App()
	if app == "" || task.Status != delaytask.Pending || r.reserved(task.Tag) {
		return report.Explanation{}, nil
	}
	receivers, reading, err := r.Store.Receivers(ctx)
	if err != nil {
		return report.Explanation{}, err
	}
	receivers = slices.DeleteFunc(receivers, func(w row.Receiver) bool { return !slices.Contains(w.Tags, task.Tag) })
	others := len(receivers)
	receivers = slices.DeleteFunc(receivers, func(w row.Receiver) bool { return w.App != app })
	others -= len(receivers)
	targets, closed := r.targets(receivers, reading.Time)
	if len(targets) > 0 {
		return report.Explanation{}, nil
	}
	app = row.Clip(app, maxApp)
	e := report.Explanation{Task: *task, Reason: report.ReasonUnserved}
	e.Task.Body = nil
	switch {
	case len(closed) > 0:
		e.Text = fmt.Sprintf("A receiver of the application %s is registered for the tag %s, but this server cannot "+
			"open its secret, because DELAYTASK_SECRET is not what it was. Let the receiver register again.",
			app, task.Tag)
	case others > 0:
		e.Text = fmt.Sprintf("No live receiver of the application %s serves the tag %s; receivers of other "+
			"applications do not get it.", app, task.Tag)
	default:
		e.Text = fmt.Sprintf("No live receiver of the application %s serves the tag %s.", app, task.Tag)
	}
	return e, nil
}
