package dashboard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/server/access"
)

// policyOf returns the Content-Security-Policy. It allows no script and no style but the files of this package.
func policyOf(ancestors []string) (string, error) {
	frames := "'none'"
	for _, origin := range ancestors {
		if origin == "" || strings.ContainsAny(origin, ";,\r\n\t ") {
			return "", fmt.Errorf("dashboard: FrameAncestors: %.100q is no origin, such as https://example.com", origin)
		}
	}
	if len(ancestors) > 0 {
		frames = strings.Join(ancestors, " ")
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors " + frames, nil
}

// guarded refuses requests that a page of another site has sent, and sets the headers of every answer.
func (d *dashboard) guarded(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	refuse := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.fail(w, d.viewOf(r, access.Caller{}), errCrossOrigin)
	})
	protection.SetDenyHandler(refuse)
	named := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
			refuse(w, r) // every browser sends one of them with a POST
			return
		}
		next.ServeHTTP(w, r)
	})
	checked := protection.Handler(named)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", d.policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Cache-Control", "no-store")
		// Without a referrer a browser would send a form with Origin: null.
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Vary", "Cookie, Accept-Language, HX-Request")
		checked.ServeHTTP(w, r)
	})
}

// mostForm bounds the form of an action: a body that is changed, and what stands around it.
const mostForm = 4 << 20

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
	seeOther(w, to+mark+"next="+url.QueryEscape(v.Here()))
}

// seeOther answers with a page to go to. It sets the header by hand: http.Redirect would make the address absolute, and
// the prefix that this handler is mounted under is not known here.
func seeOther(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// isPart reports whether a script asks for the live part of a page.
func isPart(r *http.Request) bool { return r.Header.Get("HX-Request") == "true" }

// readTime bounds what a page reads.
const readTime = 2 * time.Second

// within bounds a read.
func within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, readTime, errSlow)
}
