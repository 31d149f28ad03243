package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server/browser"
)

// guarded refuses requests that a page of another site has sent, and sets the headers of every answer.
func (d *dashboard) guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		browser.SetHeaders(w.Header(), d.policy)
		w.Header().Set("Vary", "Cookie, Accept-Language, HX-Request")
		if browser.IsCrossOrigin(r) {
			d.fail(w, d.viewOf(r, access.Caller{}), errCrossOrigin)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// who finds the user, or answers for it.
func (d *dashboard) who(w http.ResponseWriter, r *http.Request) (*view, bool) {
	user, err := d.o.Who(r)
	var caller access.Caller
	if err == nil {
		caller, err = user.caller()
	}
	switch {
	case err == nil:
		v := d.viewOf(r.WithContext(access.WithCaller(r.Context(), caller)), caller)
		v.Open = user.Open
		if _, err := url.ParseQuery(r.URL.RawQuery); err != nil { // what is left out of a filter would widen it
			d.fail(w, v, errQuery)
			return nil, false
		}
		return v, true
	case !errors.Is(err, ErrSignIn):
		d.log.Error("dashboard: the user of a request cannot be told", "err", err)
		d.fail(w, d.viewOf(r, caller), errNoUser)
	case d.o.SignIn == "" || r.Method != http.MethodGet || isPart(r):
		d.fail(w, d.viewOf(r, caller), ErrSignIn)
	default:
		d.signIn(w, r)
	}
	return nil, false
}

// signIn leads to the login, and from there back to the page.
func (d *dashboard) signIn(w http.ResponseWriter, r *http.Request) {
	v := d.viewOf(r, access.Caller{})
	to := v.fromRoot(d.o.SignIn)
	mark := "?"
	if strings.Contains(to, "?") {
		mark = "&"
	}
	browser.SeeOther(w, to+mark+"next="+url.QueryEscape(v.Here()))
}

// isPart reports whether a script asks for the live part of a page.
func isPart(r *http.Request) bool { return r.Header.Get("HX-Request") == "true" }
