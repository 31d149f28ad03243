package redact

import (
	"slices"
	"strings"
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

var (
	// secretWords name secrets by themselves.
	secretWords = set("password passwords passwd pwd passphrase passcode passwort secret secrets credential " +
		"credentials creds otp totp cvv cvc privkey")
	// secretEnds end words that are written without a boundary, such as dbpassword.
	secretEnds = strings.Fields("passwd passphrase secret secrets credentials pwd apikey apikeys privatekey " +
		"secretkey accesskey signingkey encryptionkey masterkey authkey sharedkey accountkey")
	// keyKinds precede key: of other keys, such as a primary key, many are no secrets.
	keyKinds = set("api secret private access signing encryption decryption master ssh account shared auth session " +
		"storage client hmac aes rsa deploy")
	// passKinds precede pass, which also is a boarding pass.
	passKinds = set("db database user smtp mail ftp redis mysql admin root proxy auth login http")
	// codeKinds precede code, which also is a postal code.
	codeKinds = set("verification recovery backup mfa auth")
	// pagers precede the token of the next page.
	pagers = set("next page prev previous continuation cursor")
	// about ends names of what is about a secret, such as token_count and password_policy.
	about = set("count counts length len size policy policies expires expiry expired expiration ttl age at date time " +
		"timestamp days hours minutes seconds ms required enabled disabled strength type kind name id ids version " +
		"min max limit limits rotation attempts retries used usage " +
		"total index status state error errors reason label " +
		"description algorithm alg scheme issuer scope scopes file path provider manager field column format prefix " +
		"changed updated created valid invalid present verified bucket budget price balance symbol decimals consent " +
		"banner preferences domain mode")
	// places end names of addresses. A token's is harmless; that of password_reset_url may hold one.
	places = set("url uri endpoint address")
)

func set(text string) map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.Fields(text) {
		all[word] = true
	}
	return all
}

// classOf tells what the name of a member, a header or a parameter says about its value.
func (r *Redactor) classOf(name string) class {
	parts := words(name)
	if len(parts) == 0 {
		return harmless
	}
	if r.knows(parts) {
		return secret
	}
	last := parts[len(parts)-1]
	if about[last] && (last != "id" || len(parts) < 2 || parts[len(parts)-2] != "secret") {
		return harmless
	}
	if len(parts) == 1 && last == "pass" {
		return secret
	}
	found := harmless
	for i, word := range parts {
		before := ""
		if i > 0 {
			before = parts[i-1]
		}
		found = max(found, classOfWord(before, word))
	}
	if places[last] && found != secret {
		return harmless
	}
	return found
}

// classOfWord is classOf for one word of a name, with the word before it.
func classOfWord(before, word string) class {
	switch {
	case word == "authorization", word == "cookie", word == "cookies":
		return header
	case secretWords[word], strings.Contains(word, "password") && !strings.HasPrefix(word, "passwordless"),
		slices.ContainsFunc(secretEnds, func(end string) bool { return strings.HasSuffix(word, end) }),
		keyKinds[before] && (word == "key" || word == "keys"), passKinds[before] && word == "pass",
		codeKinds[before] && (word == "code" || word == "codes"):
		return secret
	case pagers[before]:
		return harmless
	case strings.HasSuffix(word, "tokens"):
		return counter
	case strings.HasSuffix(word, "token"):
		for pager := range pagers {
			if strings.HasSuffix(word, pager+"token") {
				return harmless
			}
		}
		return token
	default:
		return harmless
	}
}

// knows reports whether one of the names that were added is in the name.
func (r *Redactor) knows(parts []string) bool {
	return slices.ContainsFunc(r.names, func(name []string) bool {
		for i := 0; i+len(name) <= len(parts); i++ {
			if slices.Equal(parts[i:i+len(name)], name) {
				return true
			}
		}
		return len(name) > 1 && slices.Contains(parts, strings.Join(name, ""))
	})
}

// worthMasking reports whether a value may be a secret. What is empty, and what is true, false or null, is none.
func worthMasking(c class, value string) bool {
	if value = strings.TrimSpace(value); len(value) < 10 {
		switch strings.ToLower(value) {
		case "", `""`, "null", "nil", "none", "undefined", "true", "false":
			return false
		}
	}
	return c != counter || strings.Trim(value, " 0123456789.") != ""
}
