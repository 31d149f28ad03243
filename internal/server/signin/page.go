package signin

import (
	"bytes"
	"cmp"
	_ "embed"
	"html/template"
	"net/http"
	"strings"

	"github.com/delaytask/delaytask/internal/server/browser"
	"github.com/delaytask/delaytask/internal/wire"
)

//go:embed page.html
var pageFile string

var pageTemplate = template.Must(template.New("page").Parse(pageFile))

// page is the login page, or one that says why a request was refused.
type page struct {
	texts
	Up        string // leads from the page to Root
	Problem   string
	Elsewhere string // where to sign in instead
	Form      bool
	Next      string // where the login leads
	Invalid   bool   // the token was
	Back      bool   // a link to the login
}

var policy = browser.Policy()

func (p page) write(w http.ResponseWriter, r *http.Request, status int) {
	p.Up = up(r)
	var text bytes.Buffer
	if err := pageTemplate.Execute(&text, p); err != nil {
		panic(err) // a programming error, which every test of the page finds
	}
	header := w.Header()
	header.Set("Content-Type", "text/html; charset=utf-8")
	browser.SetHeaders(header, policy)
	header.Add("Vary", "Accept-Language")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(text.Bytes()) // the client may be gone
	}
}

// up leads from the page of the request to Root, whatever a proxy has put before that.
func up(r *http.Request) string {
	return strings.Repeat("../", strings.Count(strings.TrimPrefix(r.URL.EscapedPath(), Root), "/"))
}

// Refuse answers a request that never reached a page, or panicked there.
func (h *Handler) Refuse(w http.ResponseWriter, r *http.Request, p *wire.Problem) {
	t := textsFor(r)
	why := cmp.Or(t.Refused[p.Code], p.Detail)
	if p.Code == wire.CodeCrossOrigin {
		why = t.CrossOrigin
	}
	page{texts: t, Problem: why}.write(w, r, p.Status)
}
