package redact

// kind is what a byte may be.
type kind uint16

const (
	wordByte  kind = 1 << iota // of a word of a name, or of a token
	nameByte                   // of a name
	endsName                   // may follow a name that has a value
	endsWord                   // is in no URL and in no DSN
	colon                      // a word of a URL or a DSN has one before a password
	endsUser                   // and one of these behind it
	endsValue                  // ends a value without quotation marks
	closes                     // ends such a value, if the value ends behind it
	begins                     // may begin a token that is known by its shape
	jsonMark                   // white space and marks of JSON
	jsonDigit
	hexDigit
	smallByte // a digit or a small letter
)

// kinds are the kinds of all bytes.
var kinds = func() (all [256]kind) {
	mark := func(k kind, bytes string) {
		for _, c := range []byte(bytes) {
			all[c] |= k
		}
	}
	const digits, small, capitals = "0123456789", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	mark(wordByte|nameByte, digits+small+capitals+"_")
	mark(nameByte, "-.")
	mark(endsName, "\"'`\\] \t:=>")
	mark(endsWord, "\"'`<>")
	for c := range ' ' + 1 {
		all[c] |= endsWord
	}
	mark(colon, ":")
	mark(endsUser, "@"+Cut[:1])
	mark(endsValue, " \t\n\r,;&\"'`<")
	mark(closes, ")]}>")
	mark(begins, "bBe")
	for c := range prefixes {
		if len(prefixes[c]) > 0 {
			all[c] |= begins
		}
	}
	mark(jsonMark, " \t\n\r,:{}[]")
	mark(jsonDigit, digits+"-.")
	mark(hexDigit, digits+"abcdefABCDEF")
	mark(smallByte, digits+small)
	return all
}()
