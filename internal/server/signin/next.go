package signin

import (
	"net/url"
	"strings"
)

const (
	firstPage = "./"
	mostNext  = 2048 // bytes
)

// target returns where a login leads that was asked for next, relative to the login page: a page of the dashboard, and
// never another place. It returns the first page for anything else.
func target(next string) string {
	rest, whole := strings.CutPrefix(next, Root)
	if !whole {
		rest = strings.TrimPrefix(next, "/")
	}
	if len(next) > mostNext || strings.ContainsFunc(rest, isUnsafe) {
		return firstPage
	}
	u, err := url.Parse(firstPage + rest) // a colon ends no scheme here
	if err != nil || u.Fragment != "" {
		return firstPage
	}
	page := strings.TrimPrefix(u.EscapedPath(), firstPage)
	if page == "login" || page == "logout" {
		return firstPage
	}
	segments := strings.Split(page, "/")
	for i, segment := range segments {
		name, err := url.PathUnescape(segment) // browsers take %2e%2e for two dots
		if err != nil || name == "." || name == ".." || name == "" && i < len(segments)-1 {
			return firstPage
		}
	}
	if u.RawQuery != "" {
		page += "?" + u.RawQuery
	}
	return firstPage + page
}

// isUnsafe reports characters that are in no address of a page. Browsers take a backslash for a slash, and leave out
// control characters.
func isUnsafe(r rune) bool { return r <= ' ' || r >= 0x7f || r == '\\' }
