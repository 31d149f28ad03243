// Package browser has what the pages of the dashboard and of its login have in common. These are headers, redirects,
// the language of the reader, and the refusal of what a page of another site sends.
package browser

import (
	"net/http"
	"strconv"
	"strings"
)

// Policy is a Content-Security-Policy. A page loads from its own origin alone, and runs no script but files. frames are
// the origins that may show it in a frame; none without one.
func Policy(frames ...string) string {
	if len(frames) == 0 {
		frames = []string{"'none'"}
	}
	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors " + strings.Join(frames, " ")
}

// SetHeaders sets the headers of every page.
func SetHeaders(h http.Header, policy string) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "same-origin") // with none at all the Origin of a form would be null
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
}

// SeeOther leads to a place that is relative to the place of the request. http.Redirect would make it absolute, without
// the prefix that a mux or a proxy has taken away.
func SeeOther(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusSeeOther)
}

var protection = http.NewCrossOriginProtection()

// IsCrossOrigin reports a request that changes something and that a page of another origin may have sent. Every browser
// names the origin with such a request, so one without a name is among them.
func IsCrossOrigin(r *http.Request) bool {
	if Reads(r) {
		return false
	}
	return protection.Check(r) != nil || r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == ""
}

// Reads reports whether a request changes nothing.
func Reads(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// Language returns the known language that a header Accept-Language prefers, the first one where it names none.
func Language(accept string, known ...string) string {
	best, found := 0.0, known[0]
	for part := range strings.SplitSeq(accept, ",") {
		tag, weight, weighted := strings.Cut(strings.TrimSpace(part), ";")
		q := 1.0
		if weighted {
			var err error
			if q, err = strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64); err != nil {
				continue
			}
		}
		if q <= best {
			continue
		}
		base, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		for i, language := range known {
			if base == language || base == "*" && i == 0 {
				best, found = q, language
			}
		}
	}
	return found
}
