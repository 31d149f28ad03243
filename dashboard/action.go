package dashboard

import (
	"errors"
	"net/http"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server/browser"
)

// action is what a POST does. It checks the rights itself: only it knows the tag.
type action struct {
	do func(*view) (result, error)
}

// result is what the reader gets after an action: a page to go to, relative to the dashboard, or one to be shown.
type result struct {
	to       string
	did      bool // the query of to says what was done
	template string
	shown    any
}

// mostForm bounds the form of an action: a body that is changed, and what stands around it.
const mostForm = 4 << 20

// action serves an action. Its answer is the page that shows what has become of it.
func (d *dashboard) action(a action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, mostForm)
		v, known := d.who(w, r)
		if !known {
			return
		}
		if err := v.r.ParseForm(); err != nil {
			d.fail(w, v, errors.Join(errForm, err))
			return
		}
		done, err := a.do(v)
		if d.o.ReadOnly && errors.Is(err, access.ErrForbidden) {
			err = errReadOnly
		}
		switch {
		case err != nil:
			d.fail(w, v, err)
		case done.template != "":
			d.render(w, v, http.StatusOK, done.template, done.shown)
		default:
			if done.did {
				sayDid(w, r, done.to)
			}
			browser.SeeOther(w, v.Root+done.to)
		}
	})
}
