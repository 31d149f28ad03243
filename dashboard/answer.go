package dashboard

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
)

// render answers with a whole page.
func (d *dashboard) render(w http.ResponseWriter, v *view, status int, template string, shown any) {
	var b bytes.Buffer
	if err := d.templates.part(&b, template, "layout", v.With(shown)); err != nil {
		d.broken(w, v, err)
		return
	}
	answer(w, status, b.Bytes())
}

// answer sends HTML. It makes visible what could deceive a reader.
func answer(w http.ResponseWriter, status int, html []byte) {
	html = visible(html)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Content-Length", strconv.Itoa(len(html)))
	w.WriteHeader(status)
	_, _ = w.Write(html) // the reader may be gone
}

// broken answers when a template fails. The reader sees nothing of it.
func (d *dashboard) broken(w http.ResponseWriter, v *view, err error) {
	d.log.Error("dashboard: a page cannot be made", "path", v.Path, "err", err)
	http.Error(w, v.T("error.page"), http.StatusInternalServerError)
}

// failure is what the error page shows.
type failure struct {
	Status int
	Text   string
	Retry  bool // it may succeed later
}

// fail answers with an error as a whole page.
func (d *dashboard) fail(w http.ResponseWriter, v *view, err error) {
	status := statusOf(err)
	v.logged(status, err)
	d.render(w, v, status, "error", failure{
		Status: status, Text: v.Failure(err), Retry: status == http.StatusServiceUnavailable,
	})
}

func (v *view) logged(status int, err error) {
	if status >= http.StatusInternalServerError {
		v.log.Warn("dashboard: a page could not be read", "path", v.Path, "err", err)
	}
}

// Failure says in the reader's language what is wrong and what to do.
func (v *view) Failure(err error) string {
	if wrong, typed := errors.AsType[invalid](err); typed {
		return v.T("error.invalid", wrong.field, v.T(wrong.want, wrong.arg))
	}
	_, code, detail := answerTo(err)
	return v.T(errorText+code, detail)
}

// gone reports whether an error is not of one part of a page alone. It logs one that is.
func (v *view) gone(err error) bool {
	if err == nil {
		return false
	}
	if v.r.Context().Err() != nil || errors.Is(err, errSlow) {
		return true
	}
	v.without(err)
	return false
}

// without logs the error of a part that a page is shown without.
func (v *view) without(err error) {
	v.log.Warn("dashboard: a part of a page could not be read", "path", v.Path, "err", err)
}
