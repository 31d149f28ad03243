package config

import (
	"strings"

	"github.com/delaytask/delaytask/internal/eyes/sentence"
)

// Reach returns the flags with which another command reaches the same database from the same folder and environment. It
// begins with a space, and is "" where none is needed. A password is masked: it must not be printed.
func (c *Config) Reach() string {
	path, inFile := strings.CutSuffix(c.DSNFrom, ": dsn")
	switch {
	case c.DSNFrom == "", c.DSNFrom == "--dsn": // commands that write want the default named, too
		return " --dsn " + sentence.Word(MaskDSN(c.DSN))
	case inFile && path != DefaultPath:
		return " --config " + sentence.Word(path)
	default:
		return ""
	}
}
