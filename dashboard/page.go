package dashboard

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server/browser"
)

// page is what a GET shows. Its template has the parts "content", with everything, and "live", with what is refreshed.
type page struct {
	template string
	verb     access.Verb // that the user needs for some tag; "": none
	conns    int64       // how many connections a reading takes at once; default 1
	cost     int         // about how many statements a refresh sends; default 2
	show     func(*view) (any, error)
}

// page serves a page, or the live part of it where a script asks for that.
func (d *dashboard) page(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v, known := d.who(w, r)
		if !known {
			return
		}
		if isPart(r) {
			d.refresh(w, v, p)
			return
		}
		v.did = v.hearDid(w)
		shown, err := v.read(p, false)
		if to, elsewhere := errors.AsType[canonical](err); elsewhere {
			browser.SeeOther(w, string(to))
			return
		}
		if err != nil {
			d.fail(w, v, err)
			return
		}
		status := http.StatusOK
		if of, known := shown.(interface{ Status() int }); known {
			status = of.Status()
		}
		d.render(w, v, status, p.template, shown)
	})
}

// read reads what a page shows, within the bounds of all reads.
func (v *view) read(p page, again bool) (any, error) {
	if p.verb != "" {
		if err := v.allow(p.verb, ""); err != nil {
			return nil, err
		}
	}
	return v.reads.do(v, p, again)
}

// refresh answers with the live part of a page, or says that it is as it was.
func (d *dashboard) refresh(w http.ResponseWriter, v *view, p page) {
	shown, err := v.read(p, true)
	if _, elsewhere := errors.AsType[canonical](err); elsewhere || errors.Is(err, errLater) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if err != nil {
		status := statusOf(err)
		v.logged(status, err)
		http.Error(w, v.Failure(err), status)
		return
	}
	var b bytes.Buffer
	if err := d.templates.part(&b, p.template, "live", v.With(shown)); err != nil {
		d.broken(w, v, err)
		return
	}
	sum := sha256.Sum256(b.Bytes())
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	w.Header().Set("ETag", tag)
	w.Header().Set("Delaytask-Now", v.Time(v.Now))
	if v.r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	answer(w, http.StatusOK, b.Bytes())
}

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
