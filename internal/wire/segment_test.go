package wire

import (
	"net/url"
	"testing"
)

func TestANameIsOnePartOfAPath(t *testing.T) {
	t.Parallel()
	for name, written := range map[string]string{
		".": ".~", "..": "..~", ".~": ".~~", "..~~": "..~~~", // these alone are written in another way
		"...": "...", "...~": "...~", "a.b": "a.b", "~": "~", "a~": "a~", "": "",
		"a/../b": "a%2F..%2Fb", "x y": "x%20y",
	} {
		if got := Segment(name); got != written {
			t.Errorf("%q is written %q, want %q", name, got, written)
		}
		if read, err := url.PathUnescape(written); err != nil || FromSegment(read) != name {
			t.Errorf("%q is read as %q, %v, want %q", written, FromSegment(read), err, name)
		}
		// As a browser resolves a link.
		base := &url.URL{Path: "/ui/tasks"}
		if to, err := base.Parse("./tags/" + written); err != nil || to.EscapedPath() != "/ui/tags/"+written {
			t.Errorf("a link to %q leads to %v, %v", name, to, err)
		}
	}
	for _, dots := range []string{".", ".."} { // of a client that knows no other way
		if got := FromSegment(dots); got != dots {
			t.Errorf("%q is read as %q", dots, got)
		}
	}
}
