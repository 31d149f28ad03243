package dashboard

import (
	"context"
	"errors"
	"net/http"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/audit"
	"github.com/delaytask/delaytask/internal/server/browser"
)

// action is what a POST does. It checks the rights itself: only it knows the tag.
type action struct {
	do func(*view) (result, error)
}

// result is what the reader gets after an action: a page to go to, relative to the dashboard, or one to be shown.
type result struct {
	to       string
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
		switch {
		case err != nil:
			d.fail(w, v, err)
		case done.template != "":
			d.render(w, v, http.StatusOK, done.template, done.shown)
		default:
			browser.SeeOther(w, v.Root+done.to)
		}
	})
}

// audited records what a user asked for, and does it. do also tells how many tasks it has changed.
func (v *view) audited(ctx context.Context, a audit.Act, do func(context.Context) (int, error)) error {
	a.Who = v.Caller.Name()
	err := v.audit.DoAll(ctx, a, func(ctx context.Context) (int64, error) {
		n, err := do(ctx)
		return int64(n), err
	})
	v.notRecorded(a.Action, err)
	return err
}

// notRecorded logs the error of a change that was refused for lack of an entry.
func (v *view) notRecorded(action audit.Action, err error) {
	if errors.Is(err, delaytask.ErrNotRecorded) {
		v.log.Error("dashboard: a change was refused, because it could not be recorded", "action", action, "err", err)
	}
}
