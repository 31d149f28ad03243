package redact

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"
)

// class is what the name of a value says about it.
type class uint8

const (
	harmless class = iota
	counter        // tokens: a secret, unless it is a number
	token          // a secret without spaces
	secret         // a secret that may have spaces
	header         // a secret up to the end of the line, or of what is quoted
)

// meaning is what a word tells of the name that it stands in.
type meaning uint16

const (
	isSecret   meaning = 1 << iota // names a secret by itself
	isHeader                       // the same, for a header
	isKey                          // key: a secret after an isKeyKind; many other keys, such as a primary key, are not
	isPass                         // pass, which also is a boarding pass: a secret by itself, and after a passKind
	isCode                         // code, which also is a postal code: a secret after a codeKind
	isKeyKind                      // precedes key
	isPassKind                     // precedes pass
	isCodeKind                     // precedes code
	isPager                        // precedes the token of the next page
	isAbout                        // ends names of what is about a secret, such as token_count and password_policy
	isPlace                        // ends names of addresses: token_url is harmless, password_reset_url is not
	isID                           // is about, but not after an isIDKind
	isIDKind                       // precedes the id that is a secret
)

const pagers = "next page prev previous continuation cursor"

var vocabulary = vocabularyOf(map[meaning]string{
	isSecret: "password passwords passwd pwd passphrase passcode passwort secret secrets credential " +
		"credentials creds otp totp cvv cvc privkey",
	isHeader: "authorization cookie cookies",
	isKey:    "key keys",
	isPass:   "pass",
	isCode:   "code codes",
	isKeyKind: "api secret private access signing encryption decryption master ssh account shared auth session " +
		"storage client hmac aes rsa deploy",
	isPassKind: "db database user smtp mail ftp redis mysql admin root proxy auth login http",
	isCodeKind: "verification recovery backup mfa auth",
	isPager:    pagers,
	isAbout: "count counts length len size policy policies expires expiry expired expiration ttl age at date time " +
		"timestamp days hours minutes seconds ms required enabled disabled strength type kind name id ids version " +
		"min max limit limits rotation attempts retries used usage " +
		"total index status state error errors reason label " +
		"description algorithm alg scheme issuer scope scopes file path provider manager field column format prefix " +
		"changed updated created valid invalid present verified bucket budget price balance symbol decimals consent " +
		"banner preferences domain mode",
	isPlace:  "url uri endpoint address",
	isID:     "id",
	isIDKind: "secret",
})

func vocabularyOf(lists map[meaning]string) map[string]meaning {
	all := map[string]meaning{}
	for what, list := range lists {
		for word := range strings.FieldsSeq(list) {
			all[word] |= what
		}
	}
	return all
}

var (
	// secretEnds end words that are written without a boundary, such as dbpassword.
	secretEnds = byLast("passwd passphrase secret secrets credentials pwd apikey apikeys privatekey secretkey " +
		"accesskey signingkey encryptionkey masterkey authkey sharedkey accountkey")
	// pagerEnds end words before token: nextpagetoken.
	pagerEnds = byLast(pagers)
)

func byLast(list string) *[256][]string {
	var all [256][]string
	for word := range strings.FieldsSeq(list) {
		last := word[len(word)-1]
		all[last] = append(all[last], word)
	}
	return &all
}

// stems are beginnings of words: three letters each.
type stems [1 << 15 / 64]uint64

// secretStems begin the words without which no name is the name of a secret.
var secretStems = func() (all stems) {
	for stem := range strings.FieldsSeq("pas pwd sec cre otp cvv cvc priv key tok aut coo cod") {
		all.add(stem)
	}
	return all
}()

func (s *stems) add(word string) {
	n := uint(word[0]&31)<<10 | uint(word[1]&31)<<5 | uint(word[2]&31)
	s[n/64] |= 1 << (n % 64)
}

// mayTell reports whether a name may be the name of a secret. It spares most names a closer look.
func (r *Redactor) mayTell(name string) bool {
	if r.odd {
		return true
	}
	known, n := r.stems, uint(0)
	if known == nil {
		known = &secretStems
	}
	for i := range len(name) {
		n = (n<<5 | uint(name[i]&31)) % (1 << 15)
		if known[n/64]&(1<<(n%64)) != 0 || name[i] >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// classOf tells what the name of a member, a header or a parameter says about its value.
func (r *Redactor) classOf(name string) class {
	if !r.mayTell(name) {
		return harmless
	}
	var room [64]byte
	all := words(room[:0], name)
	found, first := harmless, true
	var is, before meaning
	for len(all) > 0 {
		n := bytes.IndexByte(all, ' ')
		word := all[:n]
		if len(r.names) > 0 && r.knows(word, all[n:]) {
			return secret
		}
		is, before = vocabulary[string(word)], is
		found = max(found, classOfWord(word, is, before))
		if all = all[n+1:]; first && len(all) == 0 && is&isPass != 0 {
			return secret
		}
		first = false
	}
	switch {
	case is&isAbout != 0 && (is&isID == 0 || before&isIDKind == 0):
		return harmless
	case is&isPlace != 0 && found != secret:
		return harmless
	}
	return found
}

// classOfWord is classOf for one word of a name, with the meaning of the word before it.
func classOfWord(word []byte, is, before meaning) class {
	switch {
	case is&isHeader != 0:
		return header
	case is&isSecret != 0, is&isKey != 0 && before&isKeyKind != 0, is&isPass != 0 && before&isPassKind != 0,
		is&isCode != 0 && before&isCodeKind != 0, endsWithAny(word, secretEnds),
		bytes.Contains(word, password) && !bytes.HasPrefix(word, passwordless):
		return secret
	case before&isPager != 0:
		return harmless
	}
	end := bytes.TrimSuffix(word, []byte("s"))
	begin, isToken := bytes.CutSuffix(end, []byte("token"))
	switch {
	case !isToken:
		return harmless
	case len(end) < len(word):
		return counter
	case endsWithAny(begin, pagerEnds):
		return harmless
	}
	return token
}

var password, passwordless = []byte("password"), []byte("passwordless")

// endsWithAny reports whether one of the ends, which are listed by their last bytes, ends the word.
func endsWithAny(word []byte, ends *[256][]string) bool {
	if len(word) == 0 {
		return false
	}
	for _, end := range ends[word[len(word)-1]] {
		if len(word) >= len(end) && string(word[len(word)-len(end):]) == end {
			return true
		}
	}
	return false
}

// knows reports whether a name that was added begins with the word and goes on with what follows it.
func (r *Redactor) knows(word, follows []byte) bool {
	for _, rest := range r.names[string(word)] {
		after := len(rest) + 1
		if rest == "" || len(follows) > after && string(follows[1:after]) == rest && follows[after] == ' ' {
			return true
		}
	}
	return false
}

// worthMasking reports whether a value may be a secret. An empty value is not, and neither are true, false and null.
func worthMasking(c class, value string) bool {
	const longestNumber = 64
	if len(value) > longestNumber {
		return true
	}
	if value = strings.TrimSpace(value); len(value) < 10 {
		switch strings.ToLower(value) {
		case "", `""`, "null", "nil", "none", "undefined", "true", "false":
			return false
		}
	}
	return c != counter || strings.ContainsFunc(value, isNoNumber)
}

func isNoNumber(r rune) bool { return (r < '0' || r > '9') && r != ' ' && r != '.' }

// words adds the words of a name in lower case, a space after each, without the digits that end them: dbPassword2 is
// db and password. Of a long name it adds the last words.
func words(all []byte, name string) []byte {
	if len(name) > longestName {
		name = name[len(name)-longestName:]
	}
	begun := len(all)
	before := other
	for at, size := 0, 0; at < len(name); at += size {
		r := rune(name[at])
		if size = 1; kinds[name[at]]&smallByte != 0 {
			all, before = append(all, name[at]), small
			continue
		}
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRuneInString(name[at:])
		}
		kind := kindOf(r)
		if kind == other || kind == capital && (before != capital || lowerFollows(name[at+size:])) {
			all = endWord(all, begun)
			begun = len(all)
		}
		if before = kind; kind == other {
			continue
		}
		if r < utf8.RuneSelf {
			if kind == capital {
				r |= ' '
			}
			all = append(all, byte(r))
		} else {
			all = utf8.AppendRune(all, unicode.ToLower(r))
		}
	}
	return endWord(all, begun)
}

// endWord ends the word that begins there, if there is one.
func endWord(all []byte, begun int) []byte {
	if len(all) == begun {
		return all
	}
	end := len(all)
	for end > begun && all[end-1] >= '0' && all[end-1] <= '9' {
		end--
	}
	if end > begun {
		all = all[:end]
	}
	return append(all, ' ')
}

// letter is what a character is in a name.
type letter uint8

const (
	other letter = iota
	small        // or a digit
	capital
)

func kindOf(r rune) letter {
	switch {
	case r >= 'A' && r <= 'Z':
		return capital
	case r < utf8.RuneSelf:
		return other
	case unicode.IsUpper(r):
		return capital
	case unicode.IsLetter(r), unicode.IsDigit(r):
		return small
	}
	return other
}

// lowerFollows reports whether a small letter follows: the K of APIKey begins a word.
func lowerFollows(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsLower(r)
}
