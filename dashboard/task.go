package dashboard

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/audit"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/server/access"
	"github.com/delaytask/delaytask/internal/wire"
)

// taskPage is one task.
type taskPage struct {
	Task     delaytask.TaskRow // without its body
	Body     int               // bytes of it
	Reason   delaytask.Reason
	Why      string // "" in a refresh: to ask locks the row
	Attempts []attempt
	Trace    string
	Group    string // of a failed task
	Did      string // the action before
}

// attempt is a line of the history.
type attempt struct {
	delaytask.FailedAttempt
	Wait  time.Duration // since the end of the one before
	Took  time.Duration
	Width int // of its bar, of 100
	Last  bool
	State delaytask.Status
}

// idOf reads the id in the path.
func (v *view) idOf() (int64, error) {
	id, err := strconv.ParseInt(v.r.PathValue("id"), 10, 64)
	if err != nil || id <= 0 {
		return 0, delaytask.ErrNotFound
	}
	return id, nil
}

// task shows one task.
func (v *view) task() (any, error) {
	id, err := v.idOf()
	if err != nil {
		return nil, err
	}
	task, err := v.scheduler.Get(v.r.Context(), delaytask.ID(id))
	if err != nil {
		return nil, err
	}
	if err := v.seen(access.Read, &task); err != nil {
		return nil, err
	}
	shown := taskPage{
		Task: task, Body: len(task.Body), Attempts: attemptsOf(&task, v.Now), Did: v.r.URL.Query().Get("did"),
	}
	shown.Task.Body = nil
	shown.Trace = traceOf(task.Headers)
	if task.Status == delaytask.Failed {
		shown.Group = v.Group(&task)
	}
	if !isPart(v.r) {
		why, err := v.scheduler.Explain(v.r.Context(), delaytask.ID(id))
		if err != nil {
			return nil, err
		}
		shown.Reason, shown.Why = why.Reason, v.redacted(task.Tag, why.Text)
	}
	return shown, nil
}

// attemptsOf lists what is known of the attempts, the oldest first.
func attemptsOf(t *delaytask.TaskRow, now time.Time) []attempt {
	var all []attempt
	for _, failed := range t.Errors {
		all = append(all, attempt{FailedAttempt: failed, State: delaytask.Failed})
	}
	last := len(t.Errors) == 0 || t.Errors[len(t.Errors)-1].N != t.Attempt
	switch {
	case t.Attempt > 0 && last && t.Status == delaytask.Completed:
		one := attempt{State: delaytask.Completed, FailedAttempt: delaytask.FailedAttempt{
			N: t.Attempt, Finished: t.Finished, Executor: t.Executor,
		}}
		if t.Attempt == 1 {
			one.Due, one.Started = t.Expected, t.Started
		}
		all = append(all, one)
	case t.Attempt > 0 && last && t.Status == delaytask.Executing:
		all = append(all, attempt{State: delaytask.Executing, FailedAttempt: delaytask.FailedAttempt{
			N: t.Attempt, Executor: t.Executor,
		}})
		if t.Attempt == 1 {
			all[len(all)-1].Started, all[len(all)-1].Due = t.Started, t.Expected
		}
	}
	var longest time.Duration
	for i := range all {
		a := &all[i]
		end := a.Finished
		if end.IsZero() {
			end = now
		}
		if !a.Started.IsZero() {
			a.Took = max(end.Sub(a.Started), 0)
		}
		if i > 0 && !a.Started.IsZero() && !all[i-1].Finished.IsZero() {
			a.Wait = max(a.Started.Sub(all[i-1].Finished), 0)
		}
		longest = max(longest, a.Took)
	}
	for i := range all {
		if longest > 0 {
			all[i].Width = max(1, int(100*all[i].Took/longest))
		}
	}
	return all
}

// traceOf returns the id of the trace that a task was saved in.
func traceOf(headers map[string]string) string {
	parts := strings.Split(headers["traceparent"], "-")
	if len(parts) != 4 || len(parts[1]) != 32 {
		return ""
	}
	return parts[1]
}

// HeaderNames lists the names of headers in order.
func (*view) HeaderNames(t delaytask.TaskRow) []string { return slices.Sorted(maps.Keys(t.Headers)) }

// changeTask does one thing with one task.
func (v *view) changeTask() (result, error) {
	id, err := v.idOf()
	if err != nil {
		return result{}, err
	}
	verb := v.r.PathValue("verb")
	if verb == verbShow {
		return v.showBody(id)
	}
	if err := v.change(id, verb); err != nil {
		return result{}, err
	}
	return result{to: fmt.Sprintf("tasks/%d?did=%s", id, verb)}, nil
}

// change does one thing with one task, once the user may.
func (v *view) change(id int64, verb string) error {
	ctx, form := v.r.Context(), v.r.PostForm
	var do func(context.Context) error
	switch verb {
	case "cancel":
		do = func(ctx context.Context) error {
			_, err := v.scheduler.Cancel(ctx, delaytask.ID(id))
			return err
		}
	case "retry":
		do = func(ctx context.Context) error { return v.scheduler.Retry(ctx, delaytask.ID(id)) }
	case "reschedule":
		delay, to, err := v.moment(form.Get("delay"), form.Get("at"))
		if err != nil {
			return err
		}
		do = func(ctx context.Context) error {
			_, err := v.scheduler.Reschedule(ctx, delaytask.ID(id), delay, to...)
			return err
		}
	case "body":
		do = func(ctx context.Context) error { return v.setBody(ctx, id) }
	default:
		return errNoPage
	}
	task, err := v.scheduler.Get(ctx, delaytask.ID(id))
	if err != nil {
		return err
	}
	if err := v.seen(access.Change, &task); err != nil {
		return err
	}
	a := audit.Act{Action: audit.Action("task." + verb), Target: strconv.FormatInt(id, 10), Tag: task.Tag}
	return v.audited(ctx, a, func(ctx context.Context) (int, error) {
		if err := do(ctx); err != nil {
			return 0, err
		}
		return 1, nil
	})
}

// moment reads when a task is to run: after a delay, or at a time.
func (v *view) moment(delay, at string) (time.Duration, []delaytask.ChangeOption, error) {
	switch {
	case delay != "" && at != "":
		return 0, nil, invalid{"delay", fmt.Errorf("%w: give a delay or a time", errForm)}
	case at != "":
		t, err := v.timeOf(at)
		if err != nil {
			return 0, nil, invalid{"at", err}
		}
		return 0, []delaytask.ChangeOption{delaytask.To(t)}, nil
	default:
		d, err := wire.ParseDuration(delay)
		if err != nil {
			return 0, nil, invalid{"delay", err}
		}
		return d, nil, nil
	}
}

// bodyPage is the body of a task, once someone has asked for it.
type bodyPage struct {
	Task  delaytask.TaskRow
	Text  string // the beginning, or all
	All   bool
	Bytes int
	Edit  bool // what is shown is what is stored, so it can be changed here
}

const (
	verbReveal  = "reveal"
	firstOfBody = 4 << 10
	mostToEdit  = 256 << 10
)

// showBody shows a body. It is a POST because it is written down who has seen it.
func (v *view) showBody(id int64) (result, error) {
	task, err := v.scheduler.Get(v.r.Context(), delaytask.ID(id))
	if err != nil {
		return result{}, err
	}
	if err := v.seen(access.Bodies, &task); err != nil {
		return result{}, err
	}
	shown := bodyPage{Task: task, Bytes: len(task.Body), All: v.r.PostForm.Get("all") != ""}
	a := audit.Act{Action: audit.Action("task." + verbReveal), Target: strconv.FormatInt(id, 10), Tag: task.Tag}
	err = v.audited(v.r.Context(), a, func(context.Context) (int, error) {
		text := v.redacted(task.Tag, string(task.Body))
		shown.All = shown.All || len(text) <= firstOfBody
		shown.Edit = shown.All && text == string(task.Body) && len(text) <= mostToEdit && utf8.ValidString(text) &&
			!bytes.ContainsFunc(task.Body, deceives) && !strings.Contains(text, "\r") &&
			task.Status == delaytask.Pending && v.allow(access.Change, task.Tag) == nil
		if shown.Text = text; !shown.All {
			shown.Text = row.Clip(text, firstOfBody)
		}
		return 1, nil
	})
	return result{template: "body", shown: shown}, err
}

// setBody replaces the body by what the form has. The version tells whether it is still the one that was shown.
func (v *view) setBody(ctx context.Context, id int64) error {
	version, err := strconv.ParseInt(v.r.PostForm.Get("version"), 10, 64)
	if err != nil || !v.r.PostForm.Has("body") {
		return errForm
	}
	task, err := v.scheduler.Get(ctx, delaytask.ID(id))
	if err != nil {
		return err
	}
	if task.Version != version {
		return delaytask.ErrContended
	}
	// A browser writes line ends as CRLF.
	body := strings.ReplaceAll(v.r.PostForm.Get("body"), "\r\n", "\n")
	_, err = v.scheduler.SetBody(ctx, delaytask.ID(id), []byte(body))
	return err
}

// find goes where a text of the search field leads: to the task with the id, or to those with a tag and key.
func (d *dashboard) find(w http.ResponseWriter, r *http.Request) {
	v, known := d.who(w, r)
	if !known {
		return
	}
	text := strings.TrimSpace(r.URL.Query().Get("q"))
	words := strings.Fields(text)
	switch id, err := strconv.ParseInt(text, 10, 64); {
	case err == nil && id > 0:
		seeOther(w, fmt.Sprintf("./tasks/%d", id))
	case len(words) == 2:
		seeOther(w, "./tasks?"+query("tag", words[0], "key", words[1]))
	case len(words) == 1:
		seeOther(w, "./tasks?"+query("tag", words[0]))
	default:
		d.fail(w, v, invalid{"q", errFind})
	}
}

// Header is the value of a header of tasks of the tag, as it may be shown.
func (v *view) Header(tag string, headers map[string]string, name string) string {
	shown := v.redacted(tag, name+": "+headers[name]) // the name tells a secret, too
	return strings.TrimPrefix(shown, name+": ")
}

// Lateness says how late the first attempt began, or how late it is.
func (v *view) Lateness(t delaytask.TaskRow) string {
	switch {
	case !t.Started.IsZero():
		return v.Span(max(t.Lateness(), 0))
	case t.Broken == "" && t.Status == delaytask.Pending && t.Attempt == 0 && v.Now.After(t.Due) && !t.Due.IsZero():
		return v.T("task.is_late", v.Span(v.Now.Sub(t.Due)))
	default:
		return "–"
	}
}
