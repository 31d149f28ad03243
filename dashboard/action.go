package dashboard

import (
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
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

// by is the user.
func (v *view) by() operate.By {
	caller := v.Caller
	if v.o.ReadOnly {
		caller = caller.Only(slices.Collect(maps.Keys(readingVerbs))...)
	}
	return operate.By{Caller: caller, Via: audit.Dashboard}
}
