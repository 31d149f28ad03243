package row

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestClipCutsBetweenCharacters(t *testing.T) {
	t.Parallel()
	f := func(s string, limit int, want string) {
		t.Helper()
		if got := Clip(s, limit); got != want {
			t.Errorf("Clip(%q, %d) = %q, want %q", s, limit, got, want)
		}
	}
	f("", 0, "")
	f("abc", 3, "abc")
	f("abc", 2, "ab")
	f("abc", -1, "")
	f("aé", 2, "a")
	f("aé", 3, "aé")
	f("😀😀", 7, "😀")
	f("a\x00b", 8, "a\x00b")
	f("a\xffb", 8, "a\uFFFDb")
	f("a\xffb", 3, "a")
	f("\x80\x80\x80\x80\x80\x80", 5, "\uFFFD")
}

func TestClipIsAlwaysShortValidAndAPrefix(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		limit := rapid.IntRange(0, 40).Draw(t, "limit")
		got := Clip(s, limit)
		if len(got) > limit || !utf8.ValidString(got) {
			t.Fatalf("Clip(%q, %d) = %q", s, limit, got)
		}
		if utf8.ValidString(s) && (!strings.HasPrefix(s, got) || len(got) < min(len(s), limit)-utf8.UTFMax) {
			t.Fatalf("Clip(%q, %d) = %q, want the longest prefix", s, limit, got)
		}
	})
}
