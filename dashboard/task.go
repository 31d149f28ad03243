package dashboard

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/wire"
)

type taskPage struct {
	Task     delaytask.TaskRow // without its body
	Body     int               // bytes of it
	Why      sentence.Text     // none in a refresh: to ask locks the row
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

// Forgotten is the last attempt that the row does not keep: it keeps the last ten.
func (p taskPage) Forgotten() int {
	if len(p.Attempts) == 0 {
		return 0
	}
	return p.Attempts[0].N - 1
}

// AppOf is the application that a task's key belongs to, "" for none.
func (*view) AppOf(t delaytask.TaskRow) string {
	if t.Key == "" {
		return ""
	}
	return t.Headers[delaytask.AppHeader]
}

// idOf reads the id in the path.
func (v *view) idOf() (int64, error) {
	id, err := strconv.ParseInt(v.r.PathValue("id"), 10, 64)
	if err != nil || id <= 0 {
		return 0, delaytask.ErrNotFound
	}
	return id, nil
}

func (v *view) task() (any, error) {
	id, err := v.idOf()
	if err != nil {
		return nil, err
	}
	var why operate.Explanation
	if isPart(v.r) {
		why.Task, err = v.look().Task(v.r.Context(), delaytask.ID(id))
	} else {
		why, err = v.look().Explain(v.r.Context(), delaytask.ID(id))
	}
	if err != nil {
		return nil, err
	}
	task := why.Task.TaskRow
	shown := taskPage{
		Task: task, Body: why.Task.Bytes, Why: why.Sentences, Attempts: attemptsOf(&task, v.Now),
	}
	if did := v.did.Get("did"); texts["task.did."+did] != nil {
		shown.Did = did
	}
	shown.Task.Body = nil
	shown.Trace = traceOf(task.Headers)
	if task.Status == delaytask.Failed {
		shown.Group = v.Group(&task)
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

// changeTask does one thing with one task.
func (v *view) changeTask() (result, error) {
	id, err := v.idOf()
	if err != nil {
		return result{}, err
	}
	verb := v.r.PathValue("verb")
	if verb == verbShow {
		return v.showTaskBody(id)
	}
	if err := v.change(id, verb); err != nil {
		return result{}, err
	}
	return result{to: fmt.Sprintf("tasks/%d?did=%s", id, verb), did: true}, nil
}

// change does one thing with one task.
func (v *view) change(id int64, verb string) (err error) {
	ctx, task := v.r.Context(), delaytask.ID(id)
	switch verb {
	case "cancel":
		_, err = v.operator.Cancel(ctx, v.by(), task)
	case "retry":
		_, err = v.operator.Retry(ctx, v.by(), task)
	case "reschedule":
		delay, to, wrong := v.moment(v.r.PostForm.Get("delay"), v.r.PostForm.Get("at"))
		if wrong != nil {
			return wrong
		}
		_, err = v.operator.Reschedule(ctx, v.by(), task, delay, to...)
	case "body":
		err = v.setBody(id)
	default:
		err = errNoPage
	}
	return err
}

// moment reads when a task is to run: after a delay, or at a time.
func (v *view) moment(delay, at string) (time.Duration, []delaytask.ChangeOption, error) {
	switch {
	case delay != "" && at != "":
		return 0, nil, invalid{field: "delay", want: "want.delay_or_time"}
	case at != "":
		t, err := v.timeOf("at", at)
		if err != nil {
			return 0, nil, err
		}
		return 0, []delaytask.ChangeOption{delaytask.To(t)}, nil
	default:
		d, err := wire.ParseDuration(delay)
		if err != nil {
			return 0, nil, invalid{field: "delay", want: "want.duration"}
		}
		return d, nil, nil
	}
}

// Header is the value of a header of a task of the tag, as it may be shown. The name tells a secret, too, and masks all
// of the value: so it is read as a member of a body.
func (v *view) Header(tag, name, value string) string {
	var member bytes.Buffer
	text := json.NewEncoder(&member)
	text.SetEscapeHTML(false)
	if err := text.Encode(map[string]string{name: value}); err != nil {
		return redact.Mask
	}
	shown := v.Redacted(tag, member.String())
	var masked map[string]string
	if err := json.Unmarshal([]byte(shown), &masked); err != nil { // the function of the program writes no JSON
		return shown
	}
	return masked[name]
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
