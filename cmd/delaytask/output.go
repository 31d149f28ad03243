package main

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/delaytask/delaytask/internal/wire"
)

// list is the JSON of every command that prints more than one thing.
type list[T any] struct {
	Items []T    `json:"items"`          // never null
	Next  string `json:"next,omitempty"` // where the next page begins; absent on the last one

	Stopped bool `json:"stopped,omitempty"` // it has looked at many tasks; there may be more
}

// viewsOf is what a list shows. It is not nil: an empty list is [] in JSON.
func viewsOf[T, V any](all []T, view func(*T) V) []V {
	views := make([]V, len(all))
	for i := range all {
		views[i] = view(&all[i])
	}
	return views
}

// printJSON writes indented JSON without escaping <, > and &: people read it.
func (a *app) printJSON(v any) error {
	if err := encode(a.stdout, v, "  "); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

func encode(w io.Writer, v any, indent string) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	return encoder.Encode(v)
}

func (a *app) printf(format string, args ...any) error {
	if _, err := fmt.Fprintf(a.stdout, format, args...); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// say prints a value with --json, and otherwise a sentence.
func (a *app) say(v any, format string, args ...any) error {
	if a.json {
		return a.printJSON(v)
	}
	return a.printf(format, args...)
}

// painted writes what is escaped and may have colours.
func (a *app) painted(text string) error {
	if _, err := io.WriteString(raw(a.stdout), text); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}

// note writes to stderr, and ignores errors.
func (a *app) note(format string, args ...any) { _, _ = fmt.Fprintf(a.stderr, format, args...) }

// lateness formats a duration in milliseconds with a tenth: 1.3 ms.
func lateness(d time.Duration) string {
	if d >= 10*time.Second {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(wire.Milliseconds(d), 'f', 1, 64) + " ms"
}

// span formats a duration for people: with two units above an hour, with milliseconds below ten seconds.
func span(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d >= 24*time.Hour:
		d = d.Truncate(time.Hour)
	case d >= time.Hour:
		d = d.Truncate(time.Minute)
	case d >= 10*time.Second:
		d = d.Truncate(time.Second)
	default:
		d = d.Truncate(time.Millisecond)
	}
	return sign + wire.FormatDuration(d)
}

func id(n int64) string { return strconv.FormatInt(n, 10) }

// counted writes "1 task" and "1,234 tasks".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", grouped(n), noun)
}

// grouped writes a number with its thousands apart.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// sorted iterates over a map in the order of its keys, so that output is deterministic.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}

// title capitalises a word.
func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

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
