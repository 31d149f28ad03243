package dashboard

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/scheduler"
)

// view is one request: who looks, how that person likes to see times, and what a template may ask for. Templates know
// it as $.
type view struct {
	*dashboard
	settings
	Caller access.Caller
	Root   string // leads from the path of the page to the dashboard's
	Path   string // of the page, from Root
	Now    time.Time
	Open   bool // no login protects the pages

	r   *http.Request
	did url.Values // what the action before has done
}

func (d *dashboard) viewOf(r *http.Request, caller access.Caller) *view {
	v := &view{dashboard: d, settings: settingsOf(r), Caller: caller, r: r, Now: d.scheduler.Now()}
	if v.Now.IsZero() { // the database's clock is not known; nothing better is
		v.Now = time.Now()
	}
	v.Path = strings.TrimPrefix(r.URL.EscapedPath(), "/")
	v.Root = "./" + strings.Repeat("../", strings.Count(v.Path, "/"))
	return v
}

// T returns a text in the reader's language, with its parameters.
func (v *view) T(key string, args ...any) string {
	text, known := texts[key][v.Lang]
	if !known {
		return key
	}
	return sentence.Fill(text, args...)
}

// With hands a part of a page what it needs: the view, and the value.
func (v *view) With(values ...any) part {
	p := part{view: v}
	if len(values) > 0 {
		p.P = values[0]
	}
	if len(values) > 1 {
		p.Q = values[1]
	}
	return p
}

// part is what a template is executed with.
type part struct {
	*view
	P any // what the page or the part shows
	Q any // more of it
}

// Version is the version of this program.
func (*view) Version() string { return scheduler.Version }

// Live is how often a page refreshes itself.
func (*view) Live() time.Duration { return refreshEvery }

// Server is the kind and version of the database, "" while they are not known.
func (v *view) Server() string {
	if name := v.server.name.Load(); name != nil {
		return *name
	}
	return ""
}
