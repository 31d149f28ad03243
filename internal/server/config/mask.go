package config

import (
	"cmp"
	"regexp"
	"strings"

	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// masked stands where a secret would.
const masked = "***"

// MaskDSN hides the password of a DSN in each of its forms. A password may contain the characters that end it, so
// everything from the first colon to the last @ is hidden; that may hide too much, never too little. An invalid DSN may
// hold its password anywhere: unless an address follows the @, all of it is hidden.
func MaskDSN(dsn string) string {
	if dsn == "" || strings.HasPrefix(dsn, "sqlite:") {
		return dsn
	}
	_, err := sqlstore.ParseDSN(dsn)
	scheme, rest := "", dsn
	if after, ok := strings.CutPrefix(dsn, "mysql://"); ok {
		scheme, rest = "mysql://", after
	}
	at := strings.LastIndexByte(rest, '@')
	user, _, hasPassword := strings.Cut(rest[:max(at, 0)], ":")
	switch {
	case err != nil && (!hasPassword || !beginsAddress.MatchString(rest[at+1:])):
		return masked
	case !hasPassword:
		return dsn
	}
	return scheme + user + ":***" + rest[at:]
}

// beginsAddress tells what may follow the user of a DSN.
var beginsAddress = regexp.MustCompile(`^(?:\w+\(|[\w.-]+:\d+/|/)`)

// maskURL hides what often is secret in an address. A malformed URL is hidden as a whole.
func maskURL(text string) string { return cmp.Or(redact.Address(text, masked), masked) }
