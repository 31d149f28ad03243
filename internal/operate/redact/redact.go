// Package redact masks secrets in texts that people are shown: bodies, headers and errors of tasks, lines of the log.
//
// In JSON it masks the values of members with names such as password, accessToken or api_key, at any depth. It also
// masks what looks like a secret within strings. In any other text it masks what follows such a name, passwords in
// URLs and DSNs, and credentials after Bearer and Basic. Private keys, JSON Web Tokens and access tokens are masked
// wherever they stand. All other bytes stay as they are, so JSON keeps its order, numbers and white space.
//
// It hides what it recognises: a secret under a harmless name is shown. Names can be added ([New]).
//
// A text is read in a fixed number of passes, each of which goes forward only, so the time grows as the text does.
package redact

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"strings"
	"sync"
	"unicode/utf8"
)

// Mask stands where a secret was. No text of a task is likely to hold it, so a request that does was made from a text
// that was shown. None of its characters is escaped in JSON.
const Mask = "[delaytask-redacted]"

// Cut ends a text of which only the beginning is there. What may be the beginning of a secret is masked before it.
const Cut = "…"

// Holds reports whether a text holds the mask.
func Holds(text []byte) bool { return bytes.Contains(text, []byte(Mask)) }

// Redactor masks secrets. All its methods may be used by many goroutines. A nil Redactor masks nothing.
type Redactor struct {
	names map[string][]string // by their first words: the words that follow, each after a space
	stems *stems              // nil: secretStems
	odd   bool                // whether a name has no stem
}

// Text masks the secrets of a text by the names that every [Redactor] knows. The tag changes nothing.
func Text(tag, text string) string { return new(Redactor).Text(tag, text) }

// longestName is how much of a name counts: its end.
const longestName = 256

// New returns a Redactor that knows further names of members, headers and parameters. A name is found whatever its
// letter case and whatever stands between its words: card_number also means cardNumber and customer-card-number. New
// returns an error for a name without a letter or a digit, and for one that is longer than 256 bytes.
func New(names ...string) (*Redactor, error) {
	known := secretStems
	r := &Redactor{names: map[string][]string{}, stems: &known}
	for _, name := range names {
		all := strings.Fields(string(words(nil, name)))
		if len(all) == 0 || len(name) > longestName || !utf8.ValidString(name) {
			return nil, fmt.Errorf("the name %.40q: want up to %d bytes with a letter or a digit", name, longestName)
		}
		for _, as := range [][]string{all, {strings.Join(all, "")}} {
			r.names[as[0]] = append(r.names[as[0]], strings.Join(as[1:], " "))
		}
		if len(all[0]) < 3 {
			r.odd = true
			continue
		}
		known.add(all[0])
	}
	return r, nil
}

// Text masks the secrets of a body or an error. A text that is JSON stays JSON. To mask what it returns again changes
// nothing, unless secrets touch in the text: then another mask may follow. A text of 4 GiB or more is masked as a
// whole. The tag of the task changes nothing here; it is there so that the method can be used where a function for each
// tag can.
func (r *Redactor) Text(_, text string) string {
	if r == nil {
		return text
	}
	if uint64(len(text)) > math.MaxUint32 {
		return Mask
	}
	room := rooms.Get().(*[2][]part)
	defer rooms.Put(room)
	m := masker{redactor: r, found: room[0][:0]}
	all := m.parts(room[1][:0], text, 0)
	room[0], room[1] = m.found, all
	return apply(text, all)
}

// rooms are lists of parts for the next text.
var rooms = sync.Pool{New: func() any { return new([2][]part) }}

// Beginning masks the secrets of the first bytes of a text, which [Cut] follows where there are more. It reads no more
// of the text.
func (r *Redactor) Beginning(tag, text string, limit int) string {
	if len(text) <= limit {
		return r.Text(tag, text)
	}
	// What is masked for fear that a secret begins there stands behind what is shown.
	const beyond = 256
	shown := r.Text(tag, upTo(text, limit+beyond)+Cut)
	return upTo(strings.TrimSuffix(shown, Cut), limit) + Cut
}

// upTo returns at most so many bytes of a text, whole characters.
func upTo(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for back := 0; back < utf8.UTFMax && limit > 0 && !utf8.RuneStart(text[limit]); back++ {
		limit--
	}
	return text[:limit]
}

// Headers masks the secrets of headers: values under the names of secrets as a whole, secrets in others. It returns the
// same map when it finds no secret, and never changes it.
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

// part is a part of a text that is masked.
type part struct {
	from, to uint32 // which keeps long lists small
	quotes   uint8  // how deep in JSON the mask needs quotation marks of its own; 0: nowhere
}

func partOf(from, to int) part { return part{from: uint32(from), to: uint32(to)} }

// masker reads one text.
type masker struct {
	redactor *Redactor
	found    []part          // by one pass over a text that is not JSON
	room     strings.Builder // for strings without their escapes
	read     int             // bytes that were read ahead, which tests count
}

// deepest is how many texts within texts are read as JSON: a string of JSON may be JSON again.
const deepest = 3

// parts adds the parts of a text that are secrets, in their order.
func (m *masker) parts(all []part, text string, depth int) []part {
	if len(text) < len(":x@/") {
		return all
	}
	if depth < deepest && m.isJSON(text) {
		return m.inJSON(all, text, depth)
	}
	return m.inText(all, text)
}

func apply(text string, parts []part) string {
	if len(parts) == 0 {
		return text
	}
	size := len(text)
	for _, p := range parts {
		size += int(p.from) - int(p.to) + len(maskIn[p.quotes])
	}
	var b strings.Builder
	b.Grow(size)
	last := uint32(0)
	for _, p := range parts {
		b.WriteString(text[last:p.from])
		b.WriteString(maskIn[p.quotes])
		last = p.to
	}
	b.WriteString(text[last:])
	return b.String()
}

// maskIn is the mask with quotation marks, by how deep it is in strings of JSON.
var maskIn = [deepest + 1]string{Mask, `"` + Mask + `"`, `\"` + Mask + `\"`, `\\\"` + Mask + `\\\"`}
