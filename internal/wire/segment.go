package wire

import (
	"net/url"
	"strings"
)

// Segment writes a name as one part of a path. Browsers and proxies resolve the parts . and .. even when the dots are
// written %2E. So these two are written .~ and ..~, and a name that looks like that gets one tilde more. All others are
// only escaped.
func Segment(name string) string {
	if isDots(strings.TrimRight(name, "~")) {
		name += "~"
	}
	return url.PathEscape(name)
}

// FromSegment returns the name that an unescaped part of a path stands for.
func FromSegment(part string) string {
	if dots := strings.TrimRight(part, "~"); dots != part && isDots(dots) {
		return part[:len(part)-1]
	}
	return part
}

func isDots(s string) bool { return s == "." || s == ".." }
