package sentence

import "strings"

// Command writes a command of delaytask as a shell takes it, with a name of a flag before each value. A flag without a
// value is left out.
func Command(verb string, flags ...string) string {
	text := "delaytask " + verb
	for i := 0; i+1 < len(flags); i += 2 {
		if flags[i+1] != "" {
			text += " --" + flags[i] + " " + Word(flags[i+1])
		}
	}
	return text
}

// Argument writes an argument of a command. No flag can follow it, because -- stands before one that looks like a flag.
func Argument(s string) string {
	if strings.HasPrefix(s, "-") {
		return "-- " + Word(s)
	}
	return Word(s)
}

// Word quotes a text where a shell would not take it as one word.
func Word(s string) string {
	special := func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
		return !letter && !strings.ContainsRune("._-:/", r)
	}
	if s != "" && strings.IndexFunc(s, special) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
