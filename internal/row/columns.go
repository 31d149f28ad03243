package row

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Clip returns s as valid UTF-8 of at most limit bytes. Bytes that are not UTF-8 become U+FFFD, and no character is cut
// in two.
func Clip(s string, limit int) string {
	s = strings.ToValidUTF8(cut(s, limit), "\uFFFD")
	return cut(s, limit) // a replacement is longer than the byte that it stands for
}

// Shorten is Clip, with an ellipsis at the end of what was cut: the mask of secrets then hides the beginning of one.
func Shorten(s string, limit int) string {
	const mark = "…"
	if len(s) <= limit {
		return Clip(s, limit)
	}
	return Clip(s, limit-len(mark)) + mark
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

const (
	maxAttempts     = 10
	maxAttemptError = 1 << 10 // bytes
)

// AppendAttempt returns the errors column with a at its end: a JSON array of the last 10 attempts, each error at most 1
// KiB. The column may be written by hand: what is not a JSON array is dropped, so that it cannot block the task.
func AppendAttempt(existing []byte, a Attempt) []byte {
	a.Error = Shorten(a.Error, maxAttemptError)
	a.Executor = Clip(a.Executor, maxAttemptError)

	var attempts []json.RawMessage // raw: entries of a newer version keep fields that this one does not know
	if err := json.Unmarshal(existing, &attempts); err != nil {
		attempts = nil
	}
	attempts = append(attempts, encode(a))
	return encode(attempts[max(0, len(attempts)-maxAttempts):])
}

// encode writes JSON to be read in a database client: <, > and & stay as they are.
func encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// Only a time outside the years 0 to 9999 can be refused, and no such time is ever stored.
		return []byte("null")
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// DecodeHeaders reads the column of headers. It leaves out values that are not strings, because the column may be
// written by hand, and returns nil where none are left.
func DecodeHeaders(column []byte) map[string]string {
	var values map[string]any
	if len(column) == 0 || json.Unmarshal(column, &values) != nil {
		return nil
	}
	var headers map[string]string
	for name, value := range values {
		if text, ok := value.(string); ok {
			if headers == nil {
				headers = make(map[string]string, len(values))
			}
			headers[name] = text
		}
	}
	return headers
}

// Stacks returns what the errors in err's tree print with %+v beyond their text, as errors of pkg/errors print their
// stacks. Each follows an empty line. Stacks does not descend below an error that prints more. It ends soon after limit
// bytes.
func Stacks(err error, limit int) string {
	var b strings.Builder
	addStacks(&b, err, limit)
	return b.String()
}

func addStacks(b *strings.Builder, err error, limit int) {
	if err == nil || b.Len() >= limit {
		return
	}
	if _, ok := err.(fmt.Formatter); ok { // fmt recovers a panic of any method it calls, and prints it
		if long := fmt.Sprintf("%+v", err); long != fmt.Sprint(err) {
			b.WriteString("\n\n" + long)
			return
		}
	}
	if e, wraps := err.(interface{ Unwrap() error }); wraps {
		addStacks(b, e.Unwrap(), limit)
	}
	if e, joins := err.(interface{ Unwrap() []error }); joins {
		for _, cause := range e.Unwrap() {
			addStacks(b, cause, limit)
		}
	}
}
