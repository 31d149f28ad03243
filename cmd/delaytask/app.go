package main

import (
	"io"
	"strings"

	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/redact"
)

// app is what all commands share.
type app struct {
	stdin       io.Reader
	stdout      io.Writer
	stderr      io.Writer
	environ     []string
	watched     bool // stderr is a terminal
	shown       bool // stdout is a terminal
	interactive bool // stdin is too: questions can be asked
	screen      screen
	columns     int // of the terminal of stderr, 0 where stderr is not a terminal
	busy        busy
	operator    *operate.Operator // on the database of the command

	configPath string // --config
	json       bool   // --json
	raw        bool   // --raw

	redactor *redact.Redactor // of the settings
}

// getenv returns the last value, as the operating system does.
func (a *app) getenv(name string) (value string) {
	for _, variable := range a.environ {
		if n, v, _ := strings.Cut(variable, "="); n == name {
			value = v
		}
	}
	return value
}
