package redact

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// isJSON reports whether a text is made of the tokens of JSON and can hold a secret. The end may be missing.
func (m *masker) isJSON(text string) bool {
	text = strings.TrimSuffix(text, Cut)
	start := skipSpace(text, 0)
	if start == len(text) || text[start] != '{' && text[start] != '[' && text[start] != '"' {
		return false
	}
	i := start
	for i < len(text) && i >= 0 {
		switch kinds[text[i]] & (jsonMark | jsonDigit) {
		case jsonMark:
			i++
		case jsonDigit:
			for i++; i < len(text) && (kinds[text[i]]&jsonDigit != 0 || text[i]|' ' == 'e' || text[i] == '+'); {
				i++
			}
		default:
			if text[i] == '"' {
				i = wholeString(text, i)
			} else {
				i = literal(text, i)
			}
		}
	}
	m.read += max(i, 0)
	return i >= 0
}

// wholeString returns where the string that begins at i ends, and -1 for one that is not JSON. What follows a string in
// JSON is a mark.
func wholeString(text string, i int) int {
	for i++; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			if i = skipSpace(text, i+1); i < len(text) && strings.IndexByte(",:]}", text[i]) < 0 {
				return -1
			}
			return i
		case c == '\\':
			if i++; i == len(text) {
				return i
			}
			if text[i] == 'u' {
				for n := 0; n < 4 && i+1 < len(text); n++ {
					if i++; kinds[text[i]]&hexDigit == 0 {
						return -1
					}
				}
			} else if escapes[text[i]] == 0 {
				return -1
			}
		case c < ' ':
			return -1
		}
	}
	return i
}

// escapes are what stands behind a backslash, and what it stands for.
var escapes = [256]byte{
	'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t',
}

// literal returns where the word of JSON at i ends, and -1 for another.
func literal(text string, i int) int {
	for _, word := range []string{"true", "false", "null"} {
		if rest := text[i:]; strings.HasPrefix(rest, word) || strings.HasPrefix(word, rest) {
			return min(i+len(word), len(text))
		}
	}
	return -1
}

// inJSON adds the parts of JSON that are secrets. It needs no stack: a string before a colon is a name, and all that
// matters of a container is where it ends.
func (m *masker) inJSON(all []part, text string, depth int) []part {
	named := false // a member of this object says that the member value is a secret
	for i := 0; i < len(text); {
		switch text[i] {
		case '{', '}':
			named = false
			i++
		case '"':
			inner, end := stringEnd(text, i)
			value, isName := memberValue(text, end)
			if !isName {
				all = m.inString(all, text, i+1, inner, depth)
				i = end
				continue
			}
			name := m.decoded(text[i+1 : inner])
			c := m.redactor.classOf(name)
			if named && (name == "value" || name == "Value") {
				c = max(c, secret)
			}
			if i = value; c == harmless {
				if isLabel(name) && i < len(text) && text[i] == '"' {
					inner, _ := stringEnd(text, i)
					named = m.redactor.classOf(m.decoded(text[i+1:inner])) != harmless
				}
				continue
			}
			if i < len(text) && strings.IndexByte(",:]}", text[i]) >= 0 {
				continue // there is no value
			}
			i = m.valueEnd(text, value)
			if worthMasking(c, text[value:i]) {
				all = appendMember(all, text, value, i, depth)
			}
		default:
			i++
		}
	}
	return all
}

// appendMember adds the value of a member. Of a string the quotation marks stay.
func appendMember(all []part, text string, from, to, depth int) []part {
	if text[from] != '"' {
		return added(all, part{uint32(from), uint32(to), uint8(depth + 1)})
	}
	inner, _ := stringEnd(text, from)
	if stored := text[from+1 : inner]; stored == "" || stored == Mask {
		return all
	}
	return added(all, partOf(from+1, inner))
}

// isLabel reports whether a member of this name may name the member value beside it, as in lists of headers and of
// environment variables.
func isLabel(name string) bool {
	switch name {
	case "name", "key", "header", "Name", "Key", "Header":
		return true
	}
	return false
}

// inString adds the parts of a string that are secrets. It may be JSON again. from and to enclose it without its
// quotation marks.
func (m *masker) inString(all []part, text string, from, to, depth int) []part {
	raw := text[from:to]
	known := len(all)
	all = m.parts(all, m.decoded(raw), depth+1)
	at := places{raw: raw, slash: slashFrom(raw, 0)}
	for i := known; i < len(all); i++ {
		p := &all[i]
		p.from = uint32(from + at.of(int(p.from)))
		p.to = uint32(from + at.of(int(p.to)))
	}
	return all
}

// places tells where in a string with escapes a byte of its text is. It is asked in order.
type places struct {
	raw      string
	at, seen int // so many bytes of raw are so many of the text
	slash    int // the next escape; below zero: no more follow
}

func (p *places) of(target int) int {
	for p.slash >= 0 && p.seen+p.slash-p.at < target {
		p.seen += p.slash - p.at
		size, r := unit(p.raw[p.slash:])
		if p.at = p.slash + size; r < 0 {
			p.seen += size
		} else {
			p.seen += utf8.RuneLen(r)
		}
		p.slash = slashFrom(p.raw, p.at)
	}
	return p.at + target - p.seen
}

// decoded is the text of a string without its quotation marks.
func (m *masker) decoded(raw string) string {
	next := slashFrom(raw, 0)
	if next < 0 {
		return raw
	}
	m.read += len(raw)
	if m.room.Cap()-m.room.Len() < len(raw) {
		m.room.Reset() // to grow would copy what others hold
		m.room.Grow(max(len(raw), 1<<10))
	}
	start, at := m.room.Len(), 0
	for next >= 0 {
		m.room.WriteString(raw[at:next])
		size, r := unit(raw[next:])
		if at = next + size; r >= 0 {
			m.room.WriteRune(r)
		} else {
			m.room.WriteString(raw[next:at])
		}
		next = slashFrom(raw, at)
	}
	m.room.WriteString(raw[at:])
	return m.room.String()[start:]
}

// slashFrom returns where the next backslash is, -1 for no more. Many follow another at once.
func slashFrom(raw string, i int) int {
	if i < len(raw) && raw[i] == '\\' {
		return i
	}
	if next := strings.IndexByte(raw[i:], '\\'); next >= 0 {
		return i + next
	}
	return -1
}

// unit returns the size of the escape that a string begins with, and what it stands for: -1 where the backslash stands
// for itself. The end of an escape may be missing.
func unit(raw string) (size int, r rune) {
	if len(raw) > 1 && escapes[raw[1]] != 0 {
		return 2, rune(escapes[raw[1]])
	}
	first := hex(raw)
	switch {
	case first < 0:
		return 1, -1
	case !utf16.IsSurrogate(first):
		return 6, first
	}
	if len(raw) > 6 && raw[6] == '\\' {
		if r := utf16.DecodeRune(first, hex(raw[6:])); r != utf8.RuneError {
			return 12, r
		}
	}
	return 6, utf8.RuneError
}

// hex is the number of an escape: \u and four digits. It is -1 where these are missing.
func hex(escape string) rune {
	if len(escape) < 6 || escape[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(escape[2:6], 16, 32)
	if err != nil {
		return -1
	}
	return rune(n)
}

func skipSpace(text string, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns where the string that begins at i ends, without and with its closing quotation mark.
func stringEnd(text string, i int) (inner, end int) {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '"':
			return i, i + 1
		case '\\':
			i++
		}
	}
	return len(text), len(text)
}

// memberValue returns where the value of a member begins whose name ends there.
func memberValue(text string, end int) (at int, isName bool) {
	at = skipSpace(text, end)
	if at == len(text) || text[at] != ':' {
		return 0, false
	}
	return skipSpace(text, at+1), true
}

// valueEnd returns where the value that begins at i ends.
func (m *masker) valueEnd(text string, i int) int {
	from := i
	for depth := 0; i < len(text); {
		switch text[i] {
		case '"':
			_, i = stringEnd(text, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		default:
			for i++; i < len(text) && strings.IndexByte("{}[]\", \t\r\n:", text[i]) < 0; {
				i++
			}
		}
		if depth <= 0 {
			break
		}
	}
	m.read += i - from
	return i
}
