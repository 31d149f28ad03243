package config

import (
	"net/url"
	"strings"
)

// maskURL hides the user and the values of the query, where addresses carry their keys. Host, path and the names in the query stay,
// so that one can tell which address it is. What cannot be taken apart is hidden as a whole.
func maskURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return masked
	}
	user := ""
	if u.User != nil {
		user = masked + "@"
	}
	shown := u.Scheme + "://" + user + u.Host + u.EscapedPath()
	if u.RawQuery == "" {
		return shown
	}
	pairs := strings.FieldsFunc(u.RawQuery, func(r rune) bool { return r == '&' || r == ';' })
	for i, pair := range pairs {
		name, _, hasValue := strings.Cut(pair, "=")
		if pairs[i] = masked; hasValue {
			pairs[i] = name + "=" + masked
		}
	}
	return shown + "?" + strings.Join(pairs, "&")
}
