// Package redact masks secrets in texts that people are shown: bodies, headers and errors of tasks.
//
// In JSON it masks the values of members with names such as password, accessToken or api_key, at any depth. It also
// masks what looks like a secret within strings. In any other text it masks what follows such a name, passwords in
// URLs and DSNs, and credentials after Bearer and Basic. Private keys, JSON Web Tokens and access tokens are masked
// wherever they stand. All other bytes stay as they are, so JSON keeps its order, numbers and white space.
//
// It hides what it recognises: a secret under a harmless name is shown. Names can be added ([New]).
package redact

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Mask stands where a secret was. No text of a task is likely to hold it, so a request that does was made from a text
// that was shown.
const Mask = "[delaytask-redacted]"

// Holds reports whether a text holds the mask.
func Holds(text []byte) bool { return bytes.Contains(text, []byte(Mask)) }

// Redactor masks secrets. All its methods may be used by many goroutines. A nil Redactor masks nothing.
type Redactor struct{ names [][]string }

// Text masks the secrets of a text by the names that every [Redactor] knows. The tag changes nothing.
func Text(tag, text string) string { return new(Redactor).Text(tag, text) }

// longestName is how much of a name counts: its end.
const longestName = 256

// New returns a Redactor that knows further names of members, headers and parameters. A name is found whatever its
// letter case and whatever stands between its words: card_number also means cardNumber and customer-card-number. New
// returns an error for a name without a letter or a digit, and for one that is longer than 256 bytes.
func New(names ...string) (*Redactor, error) {
	r := &Redactor{}
	for _, name := range names {
		parts := words(name)
		if len(parts) == 0 || len(name) > longestName || !utf8.ValidString(name) {
			return nil, fmt.Errorf("the name %.40q: want up to %d bytes with a letter or a digit", name, longestName)
		}
		r.names = append(r.names, parts)
	}
	return r, nil
}

// Text masks the secrets of a body or an error. A text that is JSON stays JSON. The text that it returns is masked
// already: to mask it again changes nothing. The tag of the task changes nothing here; it is there so that the method
// can be used where a function for each tag can.
func (r *Redactor) Text(_, text string) string {
	if r == nil {
		return text
	}
	return apply(text, r.edits(text, 0))
}

// Headers masks the secrets of headers: values under the names of secrets as a whole, secrets in others. It returns the
// same map when there are none, and never changes it.
func (r *Redactor) Headers(tag string, headers map[string]string) map[string]string {
	if r == nil {
		return headers
	}
	var masked map[string]string
	for name, value := range headers {
		shown := r.Text(tag, value)
		if c := r.classOf(name); c != harmless && worthMasking(c, value) {
			shown = Mask
		}
		if shown == value {
			continue
		}
		if masked == nil {
			masked = maps.Clone(headers)
		}
		masked[name] = shown
	}
	if masked == nil {
		return headers
	}
	return masked
}

// edit replaces a part of a text.
type edit struct {
	from, to int
	with     string
}

// deepest is how many texts within texts are read: a string of JSON may be JSON again.
const deepest = 6

// edits returns the parts of a text to replace, in their order.
func (r *Redactor) edits(text string, depth int) []edit {
	if depth < deepest && isJSON(text) {
		return r.jsonEdits(text, depth)
	}
	return r.textEdits(text)
}

func apply(text string, edits []edit) string {
	if len(edits) == 0 {
		return text
	}
	var b strings.Builder
	b.Grow(len(text) + len(edits)*(len(Mask)+2))
	last := 0
	for _, e := range edits {
		b.WriteString(text[last:e.from])
		b.WriteString(e.with)
		last = e.to
	}
	b.WriteString(text[last:])
	return b.String()
}

// united sorts the parts of a text that are secrets, and unites those that overlap. It leaves out those that are
// masked.
func united(text string, secrets []edit) []edit {
	slices.SortFunc(secrets, func(a, b edit) int { return cmp.Or(a.from-b.from, a.to-b.to) })
	all := secrets[:0]
	for _, e := range secrets {
		if n := len(all); n > 0 && e.from < all[n-1].to {
			all[n-1].to = max(all[n-1].to, e.to)
			continue
		}
		all = append(all, e)
	}
	return slices.DeleteFunc(all, func(e edit) bool { return e.from >= e.to || text[e.from:e.to] == Mask })
}

// words splits a name into its words in lower case, without the digits that end them: dbPassword2 is db, password. Of
// a long name it returns the last words.
func words(name string) []string {
	if len(name) > longestName {
		name = name[len(name)-longestName:]
	}
	var all []string
	start := -1
	end := func(at int) {
		if start >= 0 {
			word := name[start:at]
			if trimmed := strings.TrimRight(word, "0123456789"); trimmed != "" {
				word = trimmed
			}
			all = append(all, strings.ToLower(word))
		}
		start = -1
	}
	var before rune
	for at, r := range name {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end(at)
		case start < 0:
			start = at
		case unicode.IsUpper(r) && (!unicode.IsUpper(before) || lowerFollows(name[at:])):
			end(at)
			start = at
		}
		before = r
	}
	end(len(name))
	return all
}

// lowerFollows reports whether the second letter is a small one: the K of APIKey begins a word.
func lowerFollows(text string) bool {
	_, size := utf8.DecodeRuneInString(text)
	r, _ := utf8.DecodeRuneInString(text[size:])
	return unicode.IsLower(r)
}
