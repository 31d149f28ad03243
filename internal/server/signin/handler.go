package signin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server/browser"
	"github.com/delaytask/delaytask/internal/server/reqbody"
)

const (
	// Root is the path below which everything of the dashboard is.
	Root = "/ui/"
	// Cookie is the name of the cookie of a session. Browsers take one of this form from this server alone, over TLS
	// or on this machine, for all of its paths.
	Cookie = "__Host-delaytask"

	mostForm  = 16 << 10  // bytes of the form of a login
	pageBytes = 512 << 10 // of a page, until it is read
	// mostPageForm is more bytes than the form of any page has.
	mostPageForm = 5 << 20
)

// held is how many bytes are held because of so many bytes of a form: those, and its values three times while they are
// decoded.
func held(form int64) int64 { return 4 * form }

// Tokens checks access tokens.
type Tokens interface {
	// Asked reports whether callers need a token now.
	Asked(ctx context.Context) (bool, error)
	// Check returns access.ErrUnauthorized for an unknown or expired token.
	Check(ctx context.Context, bearer string) (access.Caller, error)
	// Holder is Check for a token that is known by its name and its hash.
	Holder(ctx context.Context, name string, hash [sha256.Size]byte) (access.Caller, error)
}

// Config is what a Handler is made of.
type Config struct {
	Pages     http.Handler // the dashboard; it is called with paths below Root, and with a caller
	Store     Store
	Tokens    Tokens // nil: none are asked for
	Log       *slog.Logger
	ReadOnly  bool           // callers may change nothing, whatever their tokens allow
	PublicURL string         // of https, where a proxy has the certificate; "": none
	Trusted   []netip.Prefix // proxies whose X-Forwarded-For counts
	Rooms     *reqbody.Rooms // for what requests hold; nil: as large as in a service
	// Note is called with the name of a caller's token, for the log of requests. May be nil.
	Note func(ctx context.Context, token string)
}

// Handler serves Root: the login, the logout, and the pages to those who are signed in.
type Handler struct {
	cfg      Config
	sessions *sessions
	limiter  limiter
	forms    forms
	lines    *rate.Limiter // of the log, about requests that failed
}

// New returns a Handler. It returns an error when a part of it is missing.
func New(c Config) (*Handler, error) {
	if c.Pages == nil || c.Store == nil || c.Log == nil {
		return nil, errors.New("signin: a part of the configuration is missing")
	}
	c.Pages = http.StripPrefix(strings.TrimSuffix(Root, "/"), c.Pages)
	c.Rooms = cmp.Or(c.Rooms, reqbody.NewRooms(reqbody.Connections))
	if c.Note == nil {
		c.Note = func(context.Context, string) {}
	}
	return &Handler{cfg: c, sessions: newSessions(c.Store), lines: rate.NewLimiter(1, 1)}, nil
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if browser.IsCrossOrigin(r) {
		t := textsFor(r)
		page{texts: t, Problem: t.CrossOrigin}.write(w, r, http.StatusForbidden)
		return
	}
	switch strings.TrimPrefix(r.URL.Path, Root) {
	case "login":
		h.login(w, r)
	case "logout":
		h.logout(w, r)
	default:
		h.guard(w, r)
	}
}

// guard passes on requests of a caller, and those for files that the login page needs.
func (h *Handler) guard(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, Root+"static/") && browser.Reads(r) {
		h.cfg.Pages.ServeHTTP(w, r)
		return
	}
	caller, err := h.caller(r)
	switch {
	case errors.Is(err, errNoSession) && browser.Reads(r) && r.Header.Get("HX-Request") == "":
		asked := strings.TrimPrefix(r.URL.RequestURI(), Root)
		to := up(r) + "login"
		if asked != "" {
			to += "?next=" + url.QueryEscape(asked)
		}
		browser.SeeOther(w, to)
		return
	case errors.Is(err, errNoSession):
		t := textsFor(r)
		page{texts: t, Problem: t.SessionOver, Back: true}.write(w, r, http.StatusUnauthorized)
		return
	case err != nil:
		h.unavailable(w, r, err)
		return
	}
	h.cfg.Note(r.Context(), caller.Name())
	if h.cfg.ReadOnly {
		caller = caller.Only(access.Read, access.Bodies, access.Observe, access.Audit, access.Metrics)
	}
	r = r.WithContext(access.WithCaller(r.Context(), caller))
	done, ok := h.cfg.Rooms.Serve(r)
	if !ok {
		h.unavailable(w, r, reqbody.NoRoom)
		return
	}
	defer done()
	defer h.cfg.Rooms.Hold(w, r, mostPageForm, held)()
	place, err := h.cfg.Rooms.Answers.Enter(r.Context(), reqbody.CallerOf(r), pageBytes, h.cfg.Rooms.Wait, nil)
	if err != nil {
		h.unavailable(w, r, err)
		return
	}
	defer place.Leave()
	place.Unread(w)
	if browser.Reads(r) { // others wait for their forms
		turn, err := h.cfg.Rooms.Read(w, r)
		if err != nil {
			h.unavailable(w, r, err)
			return
		}
		defer turn.Leave()
		w = turn
	}
	h.cfg.Pages.ServeHTTP(w, r)
}

// caller returns the caller of the request's session. It returns errNoSession for a request without one. Where no
// tokens are asked for, every caller has all rights.
func (h *Handler) caller(r *http.Request) (access.Caller, error) {
	if asked, err := h.asked(r.Context()); err != nil || !asked {
		return access.Everyone(), err
	}
	cookies := r.CookiesNamed(Cookie)
	if len(cookies) != 1 {
		return access.Caller{}, errNoSession
	}
	s, err := h.sessions.find(r.Context(), cookies[0].Value)
	if err != nil {
		return access.Caller{}, err
	}
	caller, err := h.cfg.Tokens.Holder(r.Context(), s.Token, s.TokenHash)
	if errors.Is(err, access.ErrUnauthorized) {
		err = errNoSession
	}
	return caller, err
}

func (h *Handler) asked(ctx context.Context) (bool, error) {
	if h.cfg.Tokens == nil {
		return false, nil
	}
	return h.cfg.Tokens.Asked(ctx)
}

func (h *Handler) login(w http.ResponseWriter, r *http.Request) {
	switch {
	case browser.Reads(r):
		h.showLogin(w, r)
	case r.Method == http.MethodPost:
		h.takeToken(w, r)
	default:
		h.wrongMethod(w, r, "GET, POST")
	}
}

func (h *Handler) showLogin(w http.ResponseWriter, r *http.Request) {
	next := target(r.URL.Query().Get("next"))
	_, err := h.caller(r)
	switch {
	case err == nil:
		browser.SeeOther(w, next)
	case !errors.Is(err, errNoSession):
		h.unavailable(w, r, err)
	default:
		h.form(r, next).write(w, r, http.StatusOK)
	}
}

// form is the login page, without a form where no session would begin.
func (h *Handler) form(r *http.Request, next string) page {
	p := page{texts: textsFor(r), Next: strings.TrimPrefix(next, firstPage)}
	if p.Form = h.keepsCookies(r); !p.Form {
		p.Problem = p.Insecure
		if h.cfg.PublicURL != "" {
			p.Elsewhere = h.cfg.PublicURL + Root
		}
	}
	return p
}

func (h *Handler) takeToken(w http.ResponseWriter, r *http.Request) {
	ctx, t := r.Context(), textsFor(r)
	r.Body = http.MaxBytesReader(w, r.Body, mostForm)
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	done := h.forms.read(w)
	err := r.ParseForm()
	if done(); err != nil || media != "application/x-www-form-urlencoded" {
		page{texts: t, Problem: t.NotAForm, Back: true}.write(w, r, http.StatusBadRequest)
		return
	}
	next := target(r.PostForm.Get("next"))
	if asked, err := h.asked(ctx); err != nil {
		h.unavailable(w, r, err)
		return
	} else if !asked {
		browser.SeeOther(w, next)
		return
	}
	p, from := h.form(r, next), sender(r, h.cfg.Trusted)
	if !p.Form {
		p.write(w, r, http.StatusForbidden)
		return
	}
	token := strings.TrimSpace(r.PostForm.Get("token"))
	caller, err := h.cfg.Tokens.Check(ctx, token)
	switch {
	case errors.Is(err, access.ErrUnauthorized):
		if wait := h.limiter.admit(from); wait > 0 {
			h.tooMany(w, r, p, wait)
			return
		}
		h.cfg.Log.Warn("a login to the dashboard was refused: the token is unknown, or has expired", "remote", from)
		p.Problem, p.Invalid = t.Wrong, true
		p.write(w, r, http.StatusUnauthorized)
		return
	case err != nil:
		h.unavailable(w, r, err)
		return
	}
	h.cfg.Note(ctx, caller.Name())
	cookie, err := h.replace(ctx, r.CookiesNamed(Cookie), caller.Name(), sha256.Sum256([]byte(token)))
	if err != nil {
		h.cfg.Log.Error("a session cannot be stored", "err", err)
		p.Problem = t.Unstored + " " + t.Unavailable
		p.write(w, r, http.StatusServiceUnavailable)
		return
	}
	h.cfg.Log.Info("signed in to the dashboard", "token", caller.Name(), "remote", from)
	http.SetCookie(w, cookieOf(cookie))
	browser.SeeOther(w, next)
}

// tooMany answers a wrong token when there were too many of them. A right one is never answered so: others must not be
// able to close the login.
func (h *Handler) tooMany(w http.ResponseWriter, r *http.Request, p page, wait time.Duration) {
	seconds := int(math.Ceil(wait.Seconds()))
	w.Header().Set("Retry-After", strconv.Itoa(seconds))
	p.Problem, p.Invalid = fmt.Sprintf(p.TooMany, seconds), true
	p.write(w, r, http.StatusTooManyRequests)
}

// mostFormer is how many sessions a login ends. A browser has one.
const mostFormer = 4

// replace ends the sessions that came with a login, and begins another one. So a session that someone else has put into
// a browser ends when that browser signs in. It looks for none before: the login must not wait for readings that
// made-up cookies ask for.
func (h *Handler) replace(ctx context.Context, former []*http.Cookie, token string, hash [32]byte) (string, error) {
	for _, c := range former[:min(len(former), mostFormer)] {
		if hash, ok := hashOf(c.Value); ok {
			if err := h.sessions.delete(ctx, hash); err != nil {
				return "", err
			}
		}
	}
	return h.sessions.begin(ctx, token, hash)
}

func cookieOf(value string) *http.Cookie {
	return &http.Cookie{
		Name: Cookie, Value: value, Path: "/", Secure: true, HttpOnly: true,
		SameSite: http.SameSiteLaxMode, // with Strict a link in an alert would lead to the login
	}
}

func (h *Handler) logout(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		h.wrongMethod(w, r, "POST")
		return
	}
	gone := cookieOf("")
	gone.MaxAge = -1
	http.SetCookie(w, gone)
	for _, c := range r.CookiesNamed(Cookie) {
		if err := h.sessions.end(r.Context(), c.Value); err != nil {
			h.cfg.Log.Error("a session cannot be deleted", "err", err)
			t := textsFor(r)
			page{texts: t, Problem: t.NotSignedOut, Back: true}.write(w, r, http.StatusServiceUnavailable)
			return
		}
	}
	browser.SeeOther(w, "login")
}

func (h *Handler) wrongMethod(w http.ResponseWriter, r *http.Request, allowed string) {
	w.Header().Set("Allow", allowed)
	t := textsFor(r)
	page{texts: t, Problem: t.WrongMethod, Back: true}.write(w, r, http.StatusMethodNotAllowed)
}

func (h *Handler) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	if h.lines.Allow() { // in an outage every request fails, and for one reason
		h.cfg.Log.Error("a session cannot be checked", "err", err)
	}
	t := textsFor(r)
	w.Header().Set("Retry-After", "1")
	page{texts: t, Problem: t.Unavailable}.write(w, r, http.StatusServiceUnavailable)
}
