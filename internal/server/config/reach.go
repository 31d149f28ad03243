package config

import "strings"

// Reach returns the flags with which another command reaches the same database from the same folder and environment. It
// begins with a space, and is "" where none is needed. A password is masked: it must not be printed.
func (c *Config) Reach() string {
	path, inFile := strings.CutSuffix(c.DSNFrom, ": dsn")
	switch {
	case c.DSNFrom == "", c.DSNFrom == "--dsn": // commands that write want the default named, too
		return " --dsn " + shellWord(MaskDSN(c.DSN))
	case inFile && path != DefaultPath:
		return " --config " + shellWord(path)
	default:
		return ""
	}
}

// shellWord quotes a text where a shell would not take it as one word.
func shellWord(s string) string {
	special := func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune("._-:/", r)
	}
	if s != "" && strings.IndexFunc(s, special) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
