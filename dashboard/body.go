package dashboard

import (
	"bytes"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/delaytask/delaytask"
)

const (
	verbShow    = "show"
	firstOfBody = 4 << 10
	mostToEdit  = 256 << 10
)

// shownBody is a body, once someone has asked for it.
type shownBody struct {
	Text     string // the beginning, or all
	All      bool
	Bytes    int
	Recorded bool // that it was shown, in the audit log
}

// shownBody returns a body as it may be shown: the beginning, unless the form asks for all. It is for a POST, because
// the audit log has who has seen what.
func (v *view) shownBody(tag string, body []byte, recorded bool) shownBody {
	shown := shownBody{All: true, Bytes: len(body), Recorded: recorded}
	if len(body) > firstOfBody && v.r.PostForm.Get("all") == "" {
		shown.Text, shown.All = v.beginning(tag, string(body), firstOfBody), false
	} else {
		shown.Text = v.Redacted(tag, string(body))
	}
	return shown
}

type taskBody struct {
	shownBody
	Task delaytask.TaskRow
	Edit bool // what is shown is what is stored, so it can be changed here
}

func (v *view) showTaskBody(id int64) (result, error) {
	task, recorded, err := v.operator.RevealBody(v.r.Context(), v.by(), delaytask.ID(id))
	if err != nil {
		return result{}, err
	}
	body := v.shownBody(task.Tag, task.Body, recorded)
	shown := taskBody{shownBody: body, Task: task}
	shown.Edit = body.All && editable(body.Text, task.Body) && task.Status == delaytask.Pending &&
		v.by().MayChangeBody(task.Tag)
	return result{template: "body", shown: shown}, nil
}

// editable reports whether a field of a form gives back a body as it is.
func editable(shown string, body []byte) bool {
	return shown == string(body) && len(body) <= mostToEdit && utf8.Valid(body) &&
		!bytes.ContainsFunc(body, deceives) && !bytes.ContainsRune(body, '\r')
}

// setBody replaces the body by what the form has, if the task is still the one that was shown.
func (v *view) setBody(id int64) error {
	version, err := strconv.ParseInt(v.r.PostForm.Get("version"), 10, 64)
	if err != nil || !v.r.PostForm.Has("body") {
		return errForm
	}
	// A browser writes line ends as CRLF.
	body := strings.ReplaceAll(v.r.PostForm.Get("body"), "\r\n", "\n")
	_, err = v.operator.SetBody(v.r.Context(), v.by(), delaytask.ID(id), []byte(body), delaytask.IfVersion(version))
	return err
}

// scheduleBody is the body of a schedule's runs.
type scheduleBody struct {
	shownBody
	Name string
}

// showScheduleBody shows the body of a schedule's runs.
func (v *view) showScheduleBody(name string) (result, error) {
	s, recorded, err := v.operator.RevealScheduleBody(v.r.Context(), v.by(), name)
	shown := scheduleBody{v.shownBody(s.Tag, s.Body, recorded), name}
	return result{template: "schedulebody", shown: shown}, err
}
