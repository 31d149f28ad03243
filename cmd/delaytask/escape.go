package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// visible escapes all output. Stored texts may contain control characters, and a terminal acts on them. All characters
// that cannot be seen become text, so that none moves the cursor, hides a line or reverses one. JSON has unescaped ones
// in strings alone, from DEL on, and \u007f means the same there.
type visible struct{ io.Writer }

func (v visible) Write(p []byte) (int, error) {
	if _, err := io.WriteString(v.Writer, escaped(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// raw returns the underlying stream.
func raw(w io.Writer) io.Writer {
	if v, ok := w.(visible); ok {
		return v.Writer
	}
	return w
}

// escaped keeps line breaks and tabs.
func escaped(s string) string {
	if strings.IndexFunc(s, unseen) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i, r := range s {
		switch _, size := utf8.DecodeRuneInString(s[i:]); {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case !unseen(r):
			b.WriteRune(r)
		case r < ' ':
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		}
	}
	return b.String()
}

func unseen(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }

// oneLine makes one line of a text, for the cell of a table.
func oneLine(s string) string { return escaped(lineBreaks.Replace(s)) }

var lineBreaks = strings.NewReplacer("\r\n", " ", "\n", " ", "\t", " ")
