package access

import (
	"strings"
	"testing"

	"github.com/delaytask/delaytask/processor"
)

// What is taken as a pattern stands for tags that there can be, and for no others than it says.
func FuzzParseTags(f *testing.F) {
	f.Add("order.*", "order.close")
	f.Add("*", "a")
	f.Add("a*b", "a*b")
	f.Add(" a ", "a")
	f.Fuzz(func(t *testing.T, pattern, tag string) {
		tags, err := ParseTags([]string{pattern})
		if err != nil {
			return
		}
		prefix, open := strings.CutSuffix(tags[0], "*")
		if len(tags) != 1 || prefix != "" && !processor.ValidTag(prefix) || prefix == "" && !open {
			t.Fatalf("%q is read as %q", pattern, tags)
		}
		c := Caller{verbs: []Verb{Read}, tags: tags}
		if want := tag == prefix || open && strings.HasPrefix(tag, prefix); c.May(Read, tag) != want {
			t.Errorf("%q stands for %q: %t", tags[0], tag, !want)
		}
	})
}
