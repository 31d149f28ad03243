package dashboard

import (
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/wire"
)

// Self is the page with its query, from the page itself.
func (v *view) Self() string { return withQuery(v.lastPart(), v.r.URL.RawQuery) }

// lastPart is the page without its query, from the page itself.
func (v *view) lastPart() string {
	return "./" + v.Path[strings.LastIndexByte(v.Path, '/')+1:]
}

// Here is the page with its query, from the root of the dashboard. For an action it is the page that has its form.
func (v *view) Here() string {
	if v.r.Method != http.MethodPost {
		return withQuery(v.Path, v.r.URL.RawQuery)
	}
	switch parts := strings.Split(v.Path, "/"); {
	case len(parts) == 3: // such as tasks/ID/cancel
		return parts[0] + "/" + parts[1]
	case v.Path == "tasks", v.Path == "bulk":
		return "tasks"
	default:
		return ""
	}
}

func withQuery(path, query string) string {
	if query == "" {
		return path
	}
	return path + "?" + query
}

// fromRoot leads to an address that an option names: a URL, or one relative to the dashboard.
func (v *view) fromRoot(to string) string {
	if strings.HasPrefix(to, "/") || strings.Contains(to, "://") {
		return to
	}
	return v.Root + to
}

// pathWithin returns the path of a page of this dashboard, relative to it. Anything that could lead elsewhere is the
// overview.
func pathWithin(path string) string {
	u, err := url.Parse(path)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Opaque != "" || strings.HasPrefix(path, "/") ||
		strings.ContainsAny(path, "\\\x00\r\n\t") || slices.Contains(strings.Split(u.Path, "/"), "..") {
		return "./"
	}
	return "./" + path
}

// query writes the parameters of a link.
func query(pairs ...string) string {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return values.Encode()
}

// Query writes the parameters of a link, for templates.
func (*view) Query(pairs ...string) (template.URL, error) { return params(query(pairs...)) }

// FirstPage is the query of the list's first page.
func (*view) FirstPage(q url.Values) string {
	first := maps.Clone(q)
	first.Del("cursor")
	return first.Encode()
}

// Segment makes a text one part of a path.
func (*view) Segment(s string) string { return wire.Segment(s) }

// Argument writes a name as an argument of a command, which no flag can follow.
func (*view) Argument(name string) string { return sentence.Argument(name) }

// SignOut is where the form behind the user's name is sent, or "".
func (v *view) SignOut() string {
	if v.o.SignOut == "" {
		return ""
	}
	return v.fromRoot(v.o.SignOut)
}
