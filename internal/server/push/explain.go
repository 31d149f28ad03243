package push

import (
	"context"
	"fmt"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// Explain says that nobody serves a pending task because of its application. Otherwise the Reason is "", and the scheduler
// knows more.
func (r *Registry) Explain(ctx context.Context, task *delaytask.TaskRow) (delaytask.Explanation, error) {
	app := task.App()
	if app == "" || task.Status != delaytask.Pending || r.reserved(task.Tag) {
		return delaytask.Explanation{}, nil
	}
	workers, reading, err := r.Store.Workers(ctx)
	if err != nil {
		return delaytask.Explanation{}, err
	}
	workers = slices.DeleteFunc(workers, func(w row.Worker) bool { return !slices.Contains(w.Tags, task.Tag) })
	others := len(workers)
	workers = slices.DeleteFunc(workers, func(w row.Worker) bool { return w.App != app })
	others -= len(workers)
	receivers, closed := r.receivers(workers, reading.Time)
	if len(receivers) > 0 {
		return delaytask.Explanation{}, nil
	}
	app = row.Clip(app, maxApp)
	e := delaytask.Explanation{Task: *task, Reason: delaytask.ReasonUnserved}
	e.Task.Body = nil
	switch {
	case len(closed) > 0:
		e.Text = fmt.Sprintf("A worker of the application %s is registered for the tag %s, but this server cannot open its secret: "+
			"DELAYTASK_SECRET is not what it was. Let the worker register again.", app, task.Tag)
	case others > 0:
		e.Text = fmt.Sprintf("No live worker of the application %s serves the tag %s; it is not given to those of other "+
			"applications.", app, task.Tag)
	default:
		e.Text = fmt.Sprintf("No live worker of the application %s serves the tag %s.", app, task.Tag)
	}
	return e, nil
}
