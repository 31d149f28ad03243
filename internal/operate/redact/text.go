package redact

import (
	"slices"
	"strings"
)

// inText adds the parts of a text that is not JSON. Each of its passes reads the text once, and finds parts in their
// order.
func (m *masker) inText(all []part, text string) []part {
	known := len(all)
	all = m.assigned(all, text)
	all = m.merged(all, known, privateKeys(m.found[:0], text))
	all = m.merged(all, known, userinfo(m.found[:0], text))
	all = m.merged(all, known, m.shaped(m.found[:0], text))
	return united(all, text, known)
}

// merged puts what another pass has found among the parts from known on.
func (m *masker) merged(all []part, known int, more []part) []part {
	if m.found = more; len(all) == 0 {
		m.found = all
		return more
	}
	i := len(all)
	all = added(all, more...)
	for to := len(all) - 1; len(more) > 0; to-- {
		last := more[len(more)-1]
		if i > known && all[i-1].from > last.from {
			i--
			all[to] = all[i]
		} else {
			all[to] = last
			more = more[:len(more)-1]
		}
	}
	return all
}

// united unites the parts from known on that overlap, and leaves out what is masked.
func united(all []part, text string, known int) []part {
	kept := all[:known]
	for _, p := range all[known:] {
		if n := len(kept); n > known && p.from < kept[n-1].to {
			kept[n-1].to = max(kept[n-1].to, p.to)
		} else {
			kept = append(kept, p)
		}
	}
	rest := slices.DeleteFunc(kept[known:], func(p part) bool { return isShown(text[p.from:p.to]) })
	return kept[:known+len(rest)]
}

// isShown tells the mask, what stands in descriptions for a secret (user:password@tcp(host:3306)/name), and what MySQL
// says of one: "using password: YES".
func isShown(value string) bool {
	return value == Mask || value == "password" || value == "***" || value == "YES" || value == "NO"
}

// added is append, which would copy long lists more often.
func added(all []part, more ...part) []part {
	if len(all)+len(more) > cap(all) {
		all = slices.Grow(all, len(all)+len(more))
	}
	return append(all, more...)
}

// privateKeys finds private keys in PEM. One without an end reaches to the end of the text, which may have been cut.
func privateKeys(found []part, text string) []part {
	const begin, dashes, end = "-----BEGIN ", "-----", "-----END "
	if len(text) < len(begin+"PRIVATE KEY") {
		return found
	}
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
		found = added(found, partOf(start, to))
		from = to
	}
}

// assigned finds what follows the name of a secret: password=x, "token": "x", --secret x, <pwd>x</pwd>.
func (m *masker) assigned(found []part, text string) []part {
	var quotes quotations
	for i := 0; i < len(text); {
		if kinds[text[i]]&nameByte == 0 {
			i++
			continue
		}
		start := i
		for i < len(text) && kinds[text[i]]&nameByte != 0 {
			i++
		}
		if i == len(text) || kinds[text[i]]&endsName == 0 {
			continue
		}
		value, sep := separator(text, start, i)
		if sep == 0 {
			continue
		}
		name := text[start:i]
		c := m.redactor.classOf(name)
		if c == harmless && isQuery(text, start) && isSignature(name) {
			c = token
		}
		if c == harmless {
			continue
		}
		from, to := m.assignedValue(&quotes, text, start, value, sep, c)
		if from == to || !worthMasking(c, text[from:to]) {
			continue
		}
		found = added(found, partOf(from, to))
		// A quotation mark may belong to what follows, so what seems quoted is read, too.
		if !isMark(text[from-1]) || to == len(text) {
			i = to
		}
	}
	return found
}

func isSignature(name string) bool {
	return name == "sig" || strings.HasSuffix(strings.ToLower(name), "signature")
}

// isQuery reports whether what starts there is a parameter of a query.
func isQuery(text string, start int) bool {
	return start > 0 && (text[start-1] == '?' || text[start-1] == '&')
}

// separator returns where the value of the name text[start:end] begins. sep is the first byte of what separates the
// two: : = > or, after a flag, a space. It is 0 where nothing separates them.
func separator(text string, start, end int) (value int, sep byte) {
	if text[end] == '>' && start > 0 && (text[start-1] == '<' || text[start-1] == ':') {
		return end + 1, '>'
	}
	i := end
	if _, after := quote(text, i); after > i {
		i = after
	} else if text[i] == ']' { // params[password]=
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

// quote returns the quotation mark at i, after any backslashes before it, and where it ends; i when no mark follows.
func quote(text string, i int) (mark byte, end int) {
	end = slashesEnd(text, i)
	if end < len(text) && isMark(text[end]) {
		return text[end], end + 1
	}
	return 0, i
}

func isMark(c byte) bool { return c == '"' || c == '\'' || c == '`' }

func slashesEnd(text string, i int) int {
	for i < len(text) && text[i] == '\\' {
		i++
	}
	return i
}

// assignedValue returns where the value of a name is that starts at start, of which value is the first byte.
func (m *masker) assignedValue(q *quotations, text string, start, value int, sep byte, c class) (from, to int) {
	if sep == '>' {
		return m.element(text, value)
	}
	for n := 0; n < 2; n++ { // a type, and a length: (string) (len=3)
		value = skipBlanks(text, typeEnd(text, value))
	}
	if value == len(text) || text[value] == '\n' || text[value] == '\r' {
		return value, value
	}
	if mark, after := quote(text, value); after > value {
		return after, m.quotedOnce(q, text, after, mark, after-value-1)
	}
	if text[value] == '[' || text[value] == '{' {
		return value, m.unquoted(text, m.group(text, value))
	}
	end := m.unquoted(text, value)
	if sep != '=' && isRemark(text[value:end]) {
		return value, value
	}
	if sep == ':' && (c == header || c == secret && beginsLine(text, start)) {
		return value, m.lineEnd(text, value)
	}
	return value, end
}

// typeEnd returns where a type in parentheses ends, or a length; i where neither begins.
func typeEnd(text string, i int) int {
	if i == len(text) || text[i] != '(' {
		return i
	}
	const longest = 40
	end := i + 1
	if strings.HasPrefix(text[end:], "len=") {
		end += len("len=")
	}
	last := min(len(text), i+longest)
	for end < last && (kinds[text[end]]&nameByte != 0 || strings.IndexByte("*[]", text[end]) >= 0) {
		end++
	}
	if end == len(text) || text[end] != ')' {
		return i
	}
	return end + 1
}

// isRemark reports whether a value without quotation marks is a word that goes on with a sentence.
func isRemark(value string) bool {
	const longest = len("unauthorized...")
	return len(value) <= longest && remarks[strings.ToLower(strings.TrimRight(value, ".,:;!"))]
}

// remarks follow a name and a colon in sentences, and are no secrets.
var remarks = func() map[string]bool {
	all := map[string]bool{}
	for word := range strings.FieldsSeq("expired invalid missing required empty unexpected unknown not is was are " +
		"has must should cannot can too malformed denied revoked failed wrong incorrect mismatch unauthorized " +
		"forbidden no the a an of for in at illegal bad could unable error it its this that these which and or but " +
		"use set give want") {
		all[word] = true
	}
	return all
}()

// element returns the text of an XML element.
func (m *masker) element(text string, value int) (from, to int) {
	const open, shut = "<![CDATA[", "]]>"
	mark := "<"
	if strings.HasPrefix(text[value:], open) {
		value, mark = value+len(open), shut
	}
	to = len(text)
	if end := strings.Index(text[value:], mark); end >= 0 {
		to = value + end
	}
	m.read += to - value
	return value, to
}

// quotations are where values end that are quoted in one another: "a \"b\" c".
type quotations [8]struct{ slashes, end int } // by the last bits of the mark, in which the three differ

// quotedOnce is quoted for values within values. It reads what one value has read no second time for another, and
// instead may return the end of the value around it, which is masked all the same.
func (m *masker) quotedOnce(q *quotations, text string, from int, mark byte, own int) int {
	if own == 0 { // the mark before from has ended any value like this
		return m.quoted(text, from, mark, own)
	}
	around := &q[mark%8]
	if from <= around.end {
		if own >= around.slashes {
			return around.end
		}
		from = around.end
	}
	around.slashes, around.end = own, m.quoted(text, from, mark, own)
	return around.end
}

// quoted returns where a quoted text ends: before the next such mark with no more backslashes than its own.
func (m *masker) quoted(text string, from int, mark byte, own int) int {
	slashes := 0
	for i := from; i < len(text); i++ {
		switch text[i] {
		case '\\':
			slashes++
			continue
		case mark:
			if own == 0 && slashes%2 == 0 {
				m.read += i - from
				return i
			}
			if own > 0 && slashes <= own {
				m.read += i - from
				return i - slashes
			}
		}
		slashes = 0
	}
	m.read += len(text) - from
	return len(text)
}

// group returns where the bracket at i is closed. One that is not reaches to the end of the text, which may have been
// cut.
func (m *masker) group(text string, i int) int {
	from, opener, closer := i, text[i], text[i]+2 // [ and ], { and }
	depth := 0
	for ; i < len(text); i++ {
		switch text[i] {
		case opener:
			depth++
		case closer:
			depth--
		}
		if depth == 0 {
			i++
			break
		}
	}
	m.read += i - from
	return i
}

// unquoted returns where a value without quotes ends.
func (m *masker) unquoted(text string, i int) int {
	from := i
	for ; i < len(text); i++ {
		k := kinds[text[i]]
		if k&endsValue != 0 || k&closes != 0 && (i+1 == len(text) ||
			kinds[text[i+1]]&(endsValue|closes) != 0 || strings.IndexByte(".:\\", text[i+1]) >= 0) {
			break
		}
		if text[i] == '\\' {
			after := slashesEnd(text, i)
			if after < len(text) && isMark(text[after]) {
				break
			}
			i = after - 1
		}
	}
	m.read += i - from
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
func (m *masker) lineEnd(text string, i int) int {
	from := i
	for ; i < len(text) && text[i] != '\n' && text[i] != '\r'; i++ {
		if text[i] != '\\' && !isMark(text[i]) {
			continue
		}
		mark, after := quote(text, i)
		switch {
		case after == i:
			i = slashesEnd(text, i) - 1
			continue
		case i == 0 || text[i-1] != '=':
			m.read += i - from
			return i
		}
		i = m.quoted(text, after, mark, after-i-1)
		if _, end := quote(text, i); end > i {
			i = end - 1
		}
	}
	i = min(i, len(text))
	m.read += i - from
	return i
}
