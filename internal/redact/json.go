package redact

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// isJSON reports whether a text is JSON that can hold a secret.
func isJSON(text string) bool {
	start := skipSpace(text, 0)
	return start < len(text) && strings.IndexByte(`{["`, text[start]) >= 0 && json.Valid([]byte(text))
}

// jsonEdits are the edits of valid JSON. It needs no stack: a string before a colon is a name, and all that matters of
// a container is where it ends.
func (r *Redactor) jsonEdits(text string, depth int) (edits []edit) {
	named := false // a member of this object says that the member value is a secret
	for i := 0; i < len(text); {
		switch text[i] {
		case '{', '}':
			named = false
			i++
		case '"':
			end := stringEnd(text, i)
			value, isName := memberValue(text, end)
			if !isName {
				edits = append(edits, r.stringEdits(text, i+1, end-1, depth)...)
				i = end
				continue
			}
			name := decoded(text[i+1 : end-1])
			c := r.classOf(name)
			if named && (name == "value" || name == "Value") {
				c = max(c, secret)
			}
			if c == harmless {
				if isLabel(name) && text[value] == '"' {
					named = r.classOf(decoded(text[value+1:stringEnd(text, value)-1])) != harmless
				}
				i = value
				continue
			}
			i = valueEnd(text, value)
			if stored := text[value:i]; worthMasking(c, stored) && stored != `"`+Mask+`"` {
				edits = append(edits, edit{value, i, `"` + Mask + `"`})
			}
		default:
			i++
		}
	}
	return edits
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

// stringEdits are the edits within a string, which may be JSON again. from and to enclose it without its quotes.
func (r *Redactor) stringEdits(text string, from, to, depth int) []edit {
	raw := text[from:to]
	edits := r.edits(decoded(raw), depth+1)
	at, seen := 0, 0 // so many bytes of raw are so many decoded ones
	place := func(target int) int {
		for seen < target {
			size, r := unit(raw[at:])
			at += size
			if seen++; r >= 0 {
				seen += utf8.RuneLen(r) - 1
			}
		}
		return from + at
	}
	for i := range edits {
		e := &edits[i]
		e.from, e.to = place(e.from), place(e.to)
		e.with = escapes.Replace(e.with)
	}
	return edits
}

var escapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// decoded is the text of a valid string without its quotes.
func decoded(raw string) string {
	if strings.IndexByte(raw, '\\') < 0 {
		return raw
	}
	var b strings.Builder
	b.Grow(len(raw))
	for i := 0; i < len(raw); {
		size, r := unit(raw[i:])
		if r >= 0 {
			b.WriteRune(r)
		} else {
			b.WriteByte(raw[i])
		}
		i += size
	}
	return b.String()
}

// unit returns the size of the byte or the escape that a string begins with. r is what an escape stands for, and -1 for
// a byte.
func unit(raw string) (size int, r rune) {
	if raw[0] != '\\' {
		return 1, -1
	}
	if raw[1] != 'u' {
		return 2, rune("\"\\/\b\f\n\r\t"[strings.IndexByte(`"\/bfnrt`, raw[1])])
	}
	first := hex(raw)
	if !utf16.IsSurrogate(first) {
		return 6, first
	}
	if len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		if r := utf16.DecodeRune(first, hex(raw[6:])); r != utf8.RuneError {
			return 12, r
		}
	}
	return 6, utf8.RuneError
}

// hex is the number of an escape: \u and four digits.
func hex(escape string) rune {
	n, _ := strconv.ParseUint(escape[2:6], 16, 32) // the JSON is valid
	return rune(n)
}

func skipSpace(text string, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t' || text[i] == '\n' || text[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns where the string that begins at i ends, with its quotes.
func stringEnd(text string, i int) int {
	for i++; text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return i + 1
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
func valueEnd(text string, i int) int {
	for depth := 0; i < len(text); {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
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
		if depth == 0 {
			return i
		}
	}
	return i
}
