package redact

import (
	"encoding/base64"
	"strings"
)

// textEdits are the edits of a text that is not JSON. Each of its passes reads the text once.
func (r *Redactor) textEdits(text string) []edit {
	secrets := privateKeys(text)
	secrets = append(secrets, r.assigned(text)...)
	secrets = append(secrets, userinfo(text)...)
	secrets = append(secrets, shaped(text)...)
	return united(text, secrets)
}

// privateKeys finds private keys in PEM. One without an end reaches to the end of the text, which may have been cut.
func privateKeys(text string) (found []edit) {
	const begin, dashes, end = "-----BEGIN ", "-----", "-----END "
	for from := 0; ; {
		start := strings.Index(text[from:], begin)
		if start < 0 {
			return found
		}
		start += from
		from = start + len(begin)
		label, _, _ := strings.Cut(text[from:min(len(text), from+80)], dashes)
		if !strings.Contains(label, "PRIVATE KEY") {
			continue
		}
		to := len(text)
		if at := strings.Index(text[from:], end); at >= 0 {
			to = from + at + len(end)
			if after := strings.Index(text[to:min(len(text), to+80)], dashes); after >= 0 {
				to += after + len(dashes)
			}
		}
		found = append(found, edit{start, to, Mask})
		from = to
	}
}

// assigned finds what follows the name of a secret: password=x, "token": "x", --secret x, <pwd>x</pwd>.
func (r *Redactor) assigned(text string) (found []edit) {
	for i := 0; i < len(text); {
		if !isNameByte(text[i]) {
			i++
			continue
		}
		start := i
		for i < len(text) && isNameByte(text[i]) {
			i++
		}
		value, sep := separator(text, start, i)
		if sep == 0 {
			continue
		}
		name := text[start:i]
		c := r.classOf(name)
		if c == harmless && isQuery(text, start) && isSignature(name) {
			c = token
		}
		if c == harmless {
			continue
		}
		from, to := assignedValue(text, start, value, sep, c)
		if from == to || !worthMasking(c, text[from:to]) {
			continue
		}
		found = append(found, edit{from, to, Mask})
		// A quotation mark may belong to what follows, so what seems quoted is read, too.
		if strings.IndexByte("\"'`", text[from-1]) < 0 || to == len(text) {
			i = to
		}
	}
	return found
}

func isNameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' || c == '.'
}

func isSignature(name string) bool {
	return name == "sig" || strings.HasSuffix(strings.ToLower(name), "signature")
}

// isQuery reports whether what starts there is a parameter of a query.
func isQuery(text string, start int) bool {
	return start > 0 && (text[start-1] == '?' || text[start-1] == '&')
}

// separator returns where the value of the name text[start:end] begins. sep is the first byte of what separates the
// two: : = > or, after a flag, a space. It is 0 where there is none.
func separator(text string, start, end int) (value int, sep byte) {
	if end < len(text) && text[end] == '>' && start > 0 && (text[start-1] == '<' || text[start-1] == ':') {
		return end + 1, '>'
	}
	i := end
	if _, after := quote(text, i); after > i {
		i = after
	} else if i < len(text) && text[i] == ']' { // params[password]=
		i++
	}
	i = skipBlanks(text, i)
	if i < len(text) && (text[i] == ':' || text[i] == '=') {
		sep = text[i]
		rest := text[i+1:]
		if sep == ':' && (strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "//")) {
			return 0, 0 // Token::Expired, secret://
		}
		for i++; i < len(text) && (text[i] == '=' || text[i] == '>'); {
			i++
		}
		return skipBlanks(text, i), sep
	}
	if text[start] == '-' && i > end && i < len(text) && text[i] != '-' {
		return i, ' '
	}
	return 0, 0
}

func skipBlanks(text string, i int) int {
	for i < len(text) && (text[i] == ' ' || text[i] == '\t') {
		i++
	}
	return i
}

// quote returns the quotation mark at i, after any backslashes before it, and where it ends; i when there is none.
func quote(text string, i int) (mark byte, end int) {
	end = slashesEnd(text, i)
	if end < len(text) && (text[end] == '"' || text[end] == '\'' || text[end] == '`') {
		return text[end], end + 1
	}
	return 0, i
}

func slashesEnd(text string, i int) int {
	for i < len(text) && text[i] == '\\' {
		i++
	}
	return i
}

// assignedValue returns where the value of a name is that starts at start, of which value is the first byte.
func assignedValue(text string, start, value int, sep byte, c class) (from, to int) {
	if sep == '>' {
		return element(text, value)
	}
	for n := 0; n < 2 && strings.HasPrefix(text[value:], "("); n++ { // a type, and a length: (string) (len=3)
		end := strings.IndexByte(text[value:min(len(text), value+40)], ')')
		if end < 0 {
			break
		}
		value = skipBlanks(text, value+end+1)
	}
	if value == len(text) || text[value] == '\n' || text[value] == '\r' {
		return value, value
	}
	if mark, after := quote(text, value); after > value {
		return after, quoted(text, after, mark, after-value-1)
	}
	if strings.IndexByte("[{", text[value]) >= 0 {
		return value, unquoted(text, group(text, value))
	}
	end := unquoted(text, value)
	if sep != '=' && remarks[strings.ToLower(strings.TrimRight(text[value:end], ".,:;!"))] {
		return value, value
	}
	if sep == ':' && (c == header || c == secret && beginsLine(text, start)) {
		return value, lineEnd(text, value)
	}
	return value, end
}

// remarks follow a name and a colon in sentences, and are no secrets.
var remarks = set("expired invalid missing required empty unexpected unknown not is was are has must should cannot " +
	"can too malformed denied revoked failed wrong incorrect mismatch unauthorized forbidden no the a an of for in " +
	"at illegal bad could unable error")

// element returns the text of an XML element.
func element(text string, value int) (from, to int) {
	const open, shut = "<![CDATA[", "]]>"
	mark := "<"
	if strings.HasPrefix(text[value:], open) {
		value, mark = value+len(open), shut
	}
	if end := strings.Index(text[value:], mark); end >= 0 {
		return value, value + end
	}
	return value, len(text)
}

// quoted returns where a quoted text ends: before the next such mark with no more backslashes than its own.
func quoted(text string, from int, mark byte, own int) int {
	slashes := 0
	for i := from; i < len(text); i++ {
		switch text[i] {
		case '\\':
			slashes++
			continue
		case mark:
			if own == 0 && slashes%2 == 0 {
				return i
			}
			if own > 0 && slashes <= own {
				return i - slashes
			}
		}
		slashes = 0
	}
	return len(text)
}

// group returns where the bracket at i is closed. One that is not reaches to the end of the text, which may have been
// cut.
func group(text string, i int) int {
	opener, closer := text[i], text[i]+2 // [ and ], { and }
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case opener:
			depth++
		case closer:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return i
}

// unquoted returns where a value without quotes ends.
func unquoted(text string, i int) int {
	for ; i < len(text); i++ {
		switch text[i] {
		case ' ', '\t', '\n', '\r', ',', ';', '&', '"', '\'', '`', '<':
			return i
		case '\\':
			if _, after := quote(text, i); after > i {
				return i
			}
			i = slashesEnd(text, i) - 1
		case ')', ']', '}', '>':
			if i+1 == len(text) || strings.IndexByte(" \t\n\r,;&)]}>\"'`.:\\<", text[i+1]) >= 0 {
				return i
			}
		}
	}
	return i
}

// beginsLine reports whether only spaces and dashes precede start on its line, as in YAML.
func beginsLine(text string, start int) bool {
	for start--; start >= 0 && text[start] != '\n'; start-- {
		if text[start] != ' ' && text[start] != '\t' && text[start] != '-' {
			return false
		}
	}
	return true
}

// lineEnd returns where the line ends, or what is quoted. What is quoted after = is a part of the line, as in
// Digest username="u".
func lineEnd(text string, i int) int {
	for ; i < len(text) && text[i] != '\n' && text[i] != '\r'; i++ {
		mark, after := quote(text, i)
		switch {
		case after > i && i > 0 && text[i-1] == '=':
			i = quoted(text, after, mark, after-i-1)
			if _, end := quote(text, i); end > i {
				i = end - 1
			}
		case after > i:
			return i
		default:
			i = max(i, slashesEnd(text, i)-1)
		}
	}
	return min(i, len(text))
}

// userinfo finds passwords in URLs and DSNs: scheme://user:x@host, user:x@tcp(host:port), user:x@/name.
func userinfo(text string) (found []edit) {
	isEnd := func(c byte) bool { return c <= ' ' || strings.IndexByte("\"'`<>", c) >= 0 }
	for i := 0; i < len(text); {
		if isEnd(text[i]) {
			i++
			continue
		}
		start := i
		for i < len(text) && !isEnd(text[i]) {
			i++
		}
		word := text[start:i]
		if strings.IndexByte(word, '@') < 0 || strings.IndexByte(word, ':') < 0 {
			continue
		}
		inWord := inDSN(word)
		if strings.Contains(word, "://") {
			inWord = inURLs(word)
		}
		for _, e := range inWord {
			found = append(found, edit{start + e.from, start + e.to, Mask})
		}
	}
	return found
}

// inURLs finds the passwords of URLs in a word. A password may hold what ends it, so all up to the last @ is one.
func inURLs(word string) (found []edit) {
	last := strings.LastIndexByte(word, '@')
	for start := 0; ; {
		at := strings.Index(word[start:], "://")
		if at < 0 || start+at > last {
			return found
		}
		start += at + len("://")
		end := len(word)
		if n := strings.IndexAny(word[start:], "/?#"); n >= 0 {
			end = start + n
		}
		colon := strings.IndexByte(word[start:end], ':')
		if colon < 0 {
			continue
		}
		colon += start
		if at := strings.LastIndexByte(word[start:end], '@'); at >= 0 {
			if to := start + at; to > colon {
				found = append(found, edit{colon + 1, to, Mask})
			}
		} else if last > end && strings.Trim(word[colon+1:end], "0123456789") != "" && word[start] != '[' {
			return append(found, edit{colon + 1, last, Mask}) // not a port
		}
	}
}

// inDSN finds the password of a DSN: what is between the first colon and the last @ before an address.
func inDSN(word string) []edit {
	colon := strings.IndexByte(word, ':')
	for at := strings.LastIndexByte(word, '@'); at > colon+1; at = strings.LastIndexByte(word[:at], '@') {
		if isAddress(word[at+1:]) {
			return []edit{{colon + 1, at, Mask}}
		}
	}
	return nil
}

// isAddress reports whether a text begins with tcp(, a slash, or host:port.
func isAddress(text string) bool {
	n := 0
	for n < len(text) && isNameByte(text[n]) {
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

// prefixes begin tokens. Those of well-known services often stand in errors.
var prefixes = []string{"dt_", "whsec_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xoxb-",
	"xoxp-", "sk_live_", "rk_live_", "sk-"}

// shaped finds what is recognised as a secret by itself: JSON Web Tokens, tokens with well-known prefixes, and
// credentials after Bearer and Basic.
func shaped(text string) (found []edit) {
	noJWT := 0 // up to here
	for i := 0; i < len(text); i++ {
		if i > 0 && isWordByte(text[i-1]) {
			continue
		}
		from := i
		var to int
		switch c := text[i] | ' '; {
		case c == 'e' && i >= noJWT && strings.HasPrefix(text[i:], "eyJ"):
			if to = webToken(text, i); to < 0 {
				noJWT, to = -to, i
			}
		case c == 'b':
			from, to = credentials(text, i)
		default:
			to = prefixed(text, i)
		}
		if to > from {
			found = append(found, edit{from, to, Mask})
			i = to - 1
		}
	}
	return found
}

func isWordByte(c byte) bool { return c != '-' && c != '.' && isNameByte(c) }

func runEnd(text string, i int, more string) int {
	for i < len(text) && (isWordByte(text[i]) || strings.IndexByte(more, text[i]) >= 0) {
		i++
	}
	return i
}

// webToken returns where the JSON Web Token at i ends. Where there is none it returns, below zero, up to where no other
// begins either.
func webToken(text string, i int) int {
	const shortest = 10
	first := runEnd(text, i, "-")
	if first == len(text) || text[first] != '.' || first-i < shortest ||
		runEnd(text, first+1, "-")-first <= shortest {
		return -first
	}
	end := runEnd(text, first, "-.")
	return i + len(strings.TrimRight(text[i:end], "."))
}

// prefixed returns where the token at i ends, i when there is none. A name with such a prefix is shorter, or has no
// digits or no capitals.
func prefixed(text string, i int) int {
	for _, prefix := range prefixes {
		if !strings.HasPrefix(text[i:], prefix) {
			continue
		}
		end := runEnd(text, i+len(prefix), "-+/=")
		body := text[i+len(prefix) : end]
		if len(body) >= 40 || len(body) >= 16 && isMixed(body) {
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
func credentials(text string, i int) (from, to int) {
	for _, scheme := range []string{"bearer", "basic"} {
		from = i + len(scheme)
		if from >= len(text) || text[from] != ' ' || !strings.EqualFold(text[i:from], scheme) {
			continue
		}
		from = skipBlanks(text, from)
		to = runEnd(text, from, "-.~+/=")
		given := text[from:to]
		if scheme == "basic" && isUserPassword(given) || scheme == "bearer" && !isProse(given) {
			return from, to
		}
	}
	return i, i
}

func isUserPassword(encoded string) bool {
	plain, err := base64.StdEncoding.DecodeString(encoded)
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
