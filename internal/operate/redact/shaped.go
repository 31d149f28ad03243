package redact

import (
	"encoding/base64"
	"strings"
)

// userinfo finds passwords in URLs and DSNs: scheme://user:x@host, user:x@tcp(host:port), user:x@/name.
func userinfo(found []part, text string) []part {
	for i := 0; i < len(text); i++ {
		start, marks := i, kind(0)
		for i < len(text) && kinds[text[i]]&endsWord == 0 {
			marks |= kinds[text[i]]
			i++
		}
		if marks&colon == 0 || marks&endsUser == 0 {
			continue
		}
		word := text[start:i]
		known := len(found)
		if strings.Contains(word, "://") {
			found = inURLs(found, word)
		} else {
			found = inDSN(found, word)
		}
		if len(found) == known {
			if from, to := cutPassword(word); from < to {
				found = added(found, partOf(from, to))
			}
		}
		for n := known; n < len(found); n++ {
			found[n].from += uint32(start)
			found[n].to += uint32(start)
		}
	}
	return found
}

// cutPassword returns where in a word the beginning of a password may be of which the end was cut.
func cutPassword(word string) (from, to int) {
	to = strings.Index(word, Cut)
	if to < 0 {
		return 0, 0
	}
	start, end := 0, to
	if at := strings.LastIndex(word[:to], "://"); at >= 0 {
		start = at + len("://")
		if at := strings.IndexAny(word[start:to], "/?#"); at >= 0 {
			end = start + at
		}
	}
	colon := strings.IndexByte(word[start:end], ':')
	if colon < 0 || end < to && strings.Trim(word[start+colon+1:end], "0123456789") == "" {
		return 0, 0
	}
	return start + colon + 1, to
}

// inURLs finds the passwords of URLs in a word. A password may hold what ends it, so all up to the last @ is one.
func inURLs(found []part, word string) []part {
	last := strings.LastIndexByte(word, '@')
	for start := 0; ; {
		at := strings.Index(word[start:], "://")
		if at < 0 || start+at > last {
			return found
		}
		start += at + len("://")
		end, colon, at := authority(word, start)
		switch {
		case colon < 0, at == colon+1:
		case at > colon:
			found = added(found, partOf(colon+1, at))
		case at < 0 && last > end && word[start] != '[' && strings.Trim(word[colon+1:end], "0123456789") != "":
			return added(found, partOf(colon+1, last)) // not a port
		}
	}
}

// authority returns where the authority of a URL that begins there ends, and where its first colon and its last @ are.
func authority(word string, start int) (end, colon, at int) {
	colon, at = -1, -1
	for end = start; end < len(word); end++ {
		switch word[end] {
		case ':':
			if colon < 0 {
				colon = end
			}
		case '@':
			at = end
		case '/', '?', '#':
			return end, colon, at
		}
	}
	return end, colon, at
}

// inDSN finds the password of a DSN: what is between the first colon and the last @ before an address.
func inDSN(found []part, word string) []part {
	colon := strings.IndexByte(word, ':')
	for at := strings.LastIndexByte(word, '@'); at > colon+1; at = strings.LastIndexByte(word[:at], '@') {
		if isAddress(word[at+1:]) {
			return added(found, partOf(colon+1, at))
		}
	}
	return found
}

// isAddress reports whether a text begins with tcp(, a slash, or host:port.
func isAddress(text string) bool {
	n := 0
	for n < len(text) && kinds[text[n]]&nameByte != 0 {
		n++
	}
	switch {
	case n == len(text):
		return false
	case text[n] == '(', n == 0 && text[n] == '/':
		return true
	default:
		return n > 0 && text[n] == ':' && n+1 < len(text) && text[n+1] >= '0' && text[n+1] <= '9'
	}
}

// prefixes begin tokens, by their first bytes. Tokens of well-known services often stand in errors.
var prefixes = func() (all [256][]string) {
	for prefix := range strings.FieldsSeq("dt_ whsec_ ghp_ gho_ ghu_ ghs_ ghr_ github_pat_ glpat- xoxb- xoxp- " +
		"sk_live_ rk_live_ sk-") {
		all[prefix[0]] = append(all[prefix[0]], prefix)
	}
	return all
}()

// shaped finds what is recognised as a secret by itself: JSON Web Tokens, tokens with well-known prefixes, and
// credentials after Bearer and Basic.
func (m *masker) shaped(found []part, text string) []part {
	noJWT := 0 // up to here
	for i := 0; i < len(text); {
		k := kinds[text[i]]
		if k&wordByte == 0 {
			i++
			continue
		}
		from, to := i, i
		if k&begins != 0 && i+1 < len(text) && kinds[text[i+1]]&wordByte != 0 {
			switch text[i] {
			case 'b', 'B':
				from, to = m.credentials(text, i)
			case 'e':
				if i >= noJWT && strings.HasPrefix(text[i:], "eyJ") {
					if to = m.webToken(text, i); to < 0 {
						noJWT, to = -to, i
					}
				}
			default:
				to = m.prefixed(text, i)
			}
		}
		if to > from {
			found = added(found, partOf(from, to))
			i = to
		}
		for i < len(text) && kinds[text[i]]&wordByte != 0 {
			i++
		}
	}
	return found
}

func (m *masker) runEnd(text string, i int, more string) int {
	from := i
	for i < len(text) && (kinds[text[i]]&wordByte != 0 || strings.IndexByte(more, text[i]) >= 0) {
		i++
	}
	m.read += i - from
	return i
}

func isCut(text string, i int) bool { return strings.HasPrefix(text[i:], Cut) }

// webToken returns where the JSON Web Token at i ends. Where no token stands it returns, below zero, up to where no
// other begins either.
func (m *masker) webToken(text string, i int) int {
	const shortest = 10
	first := m.runEnd(text, i, "-")
	if isCut(text, first) {
		return first
	}
	if first == len(text) || text[first] != '.' || first-i < shortest {
		return -first
	}
	if second := m.runEnd(text, first+1, "-"); second-first <= shortest && !isCut(text, second) {
		return -first
	}
	end := m.runEnd(text, first, "-.")
	return i + len(strings.TrimRight(text[i:end], "."))
}

// prefixed returns where the token at i ends, i when no token begins there. A name with such a prefix is shorter, or
// has no digits or no capitals.
func (m *masker) prefixed(text string, i int) int {
	for _, prefix := range prefixes[text[i]] {
		if !strings.HasPrefix(text[i:], prefix) {
			continue
		}
		end := m.runEnd(text, i+len(prefix), "-+/=")
		body := text[i+len(prefix) : end]
		if len(body) >= 40 || len(body) >= 16 && isMixed(body) || isCut(text, end) {
			return end
		}
	}
	return i
}

func isMixed(text string) bool {
	const digits, capitals = "0123456789", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	return strings.ContainsAny(text, digits) && strings.ContainsAny(text, capitals)
}

// credentials returns what follows Bearer or Basic, if it is no word of a sentence.
func (m *masker) credentials(text string, i int) (from, to int) {
	for _, scheme := range []string{"bearer", "basic"} {
		from = i + len(scheme)
		if from >= len(text) || text[from] != ' ' || !strings.EqualFold(text[i:from], scheme) {
			continue
		}
		from = skipBlanks(text, from)
		to = m.runEnd(text, from, "-.~+/=")
		given := text[from:to]
		if isCut(text, to) || scheme == "basic" && isUserPassword(given) || scheme == "bearer" && !isProse(given) {
			return from, to
		}
	}
	return i, i
}

func isUserPassword(encoded string) bool {
	var room [128]byte
	plain, err := base64.StdEncoding.AppendDecode(room[:0], []byte(encoded))
	return err == nil && strings.IndexByte(string(plain), ':') >= 0
}

// isProse reports whether what follows Bearer is a word, or the parameter of a challenge.
func isProse(given string) bool {
	if len(given) < 4 {
		return true
	}
	if name, _, found := strings.Cut(given, "="); found && (name == "realm" || name == "error" || name == "scope") {
		return true
	}
	return len(given) < 20 && strings.Trim(strings.TrimRight(given[1:], "."), "abcdefghijklmnopqrstuvwxyz") == ""
}
