package push

import (
	"context"
	"fmt"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

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
		e.Text = fmt.Sprintf("A receiver of the application %s is registered for the tag %s, but this server cannot open its secret: "+
			"DELAYTASK_SECRET is not what it was. Let the receiver register again.", app, task.Tag)
	case others > 0:
		e.Text = fmt.Sprintf("No live receiver of the application %s serves the tag %s; it is not given to those of other "+
			"applications.", app, task.Tag)
	default:
		e.Text = fmt.Sprintf("No live receiver of the application %s serves the tag %s.", app, task.Tag)
	}
	return e, nil
}
