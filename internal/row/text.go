package row

import (
	"strings"
	"unicode/utf8"
)

// Clip returns s as valid UTF-8 of at most limit bytes. Bytes that are not UTF-8 become U+FFFD, and no character is cut
// in two.
func Clip(s string, limit int) string {
	s = strings.ToValidUTF8(cut(s, limit), "\uFFFD")
	return cut(s, limit) // a replacement is longer than the byte that it stands for
}

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := max(limit, 0)
	for back := 0; end > 0 && back < utf8.UTFMax && !utf8.RuneStart(s[end]); back++ {
		end--
	}
	return s[:end]
}
