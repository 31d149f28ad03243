package dashboard

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/operate"
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

// May reports whether the user may do it with tasks of the tag, for a template that offers it. Actions check it again.
func (v *view) May(verb, tag string) bool {
	return v.allow(access.Verb(verb), tag) == nil
}

// MayDelete reports whether the user may delete a schedule of the tag, for a template that offers it.
func (v *view) MayDelete(tag string) bool { return v.by().MaySchedule(tag) }

// readingVerbs change nothing.
var readingVerbs = map[access.Verb]bool{
	access.Read: true, access.Observe: true, access.Bodies: true, access.Audit: true,
}

// allow returns an error when the user may not do it with tasks of the tag, or of some tag when that is "".
func (v *view) allow(verb access.Verb, tag string) error {
	switch {
	case v.o.ReadOnly && !readingVerbs[verb]:
		return errReadOnly
	case v.Caller.May(verb, tag), tag == "" && v.Caller.SomeTag(verb):
		return nil
	default:
		return errForbidden
	}
}

// allTags reports whether the user may read tasks of every tag.
func (v *view) allTags(verb access.Verb) bool { return v.Caller.AnyTag(verb) }

// look is what the user may see. A page masks the part of a text that it shows.
func (v *view) look() *operate.View { return v.operator.View(v.by()).Bare() }

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

// SignOut is where the form behind the user's name is sent, or "".
func (v *view) SignOut() string {
	if v.o.SignOut == "" {
		return ""
	}
	return v.fromRoot(v.o.SignOut)
}

// Version is the version of this program.
func (*view) Version() string { return scheduler.Version }

// Live is how often a page refreshes itself.
func (*view) Live() time.Duration { return refreshEvery }
