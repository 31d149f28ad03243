package config

import "strings"

// MaskDSN hides the password of a DSN in each of its forms. A password may itself hold the characters that end it, so
// everything from the first colon to the last @ is hidden; that can hide too much, never too little.
func MaskDSN(dsn string) string {
	if strings.HasPrefix(dsn, "sqlite:") {
		return dsn
	}
	scheme, rest := "", dsn
	if after, ok := strings.CutPrefix(dsn, "mysql://"); ok {
		scheme, rest = "mysql://", after
	}
	at := strings.LastIndexByte(rest, '@')
	if at < 0 {
		return dsn
	}
	user, _, hasPassword := strings.Cut(rest[:at], ":")
	if !hasPassword {
		return dsn
	}
	return scheme + user + ":***" + rest[at:]
}
