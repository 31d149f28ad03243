package redact

import (
	"net/url"
	"regexp"
	"strings"
)

// Address is a URL with marks for what often is secret: the user, the values of the query, and each part of the path
// that is no word, so that the URL can be recognised. Address returns "" for what is no URL with a host.
func Address(address, mark string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return ""
	}
	shown := u.Scheme + "://"
	if u.User != nil {
		shown += mark + "@"
	}
	path := strings.Split(u.EscapedPath(), "/")
	for i, part := range path {
		if part != "" && !isWord.MatchString(part) {
			path[i] = mark
		}
	}
	shown += u.Host + strings.Join(path, "/")
	if u.RawQuery == "" {
		return shown
	}
	pairs := strings.FieldsFunc(u.RawQuery, func(r rune) bool { return r == '&' || r == ';' })
	for i, pair := range pairs {
		name, _, hasValue := strings.Cut(pair, "=")
		if pairs[i] = mark; hasValue {
			pairs[i] = name + "=" + mark
		}
	}
	return shown + "?" + strings.Join(pairs, "&")
}

// isWord tells words and versions from keys: tasks, order-closed, hook2, v1.
var isWord = regexp.MustCompile(`^(?:v?\d{1,3}|[A-Za-z]{1,12}(?:[-_.][A-Za-z]{1,12}){0,3}\d{0,2})$`)
