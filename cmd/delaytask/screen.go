package main

import (
	"cmp"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/term"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/doctor"
)

// screen is what the terminal that shows stdout can do. The zero value is a file or a pipe.
type screen struct {
	width  int  // columns; 0: lines may have any length
	colour bool // obeys NO_COLOR (https://no-color.org) and TERM=dumb
	blocks bool // shows characters beyond ASCII, by the locale
}

func screenOf(stdout io.Writer, getenv func(string) string) screen {
	if !isTerminal(stdout) {
		return screen{}
	}
	width, _, err := term.GetSize(int(stdout.(*os.File).Fd()))
	if err != nil {
		width = 0
	}
	return screen{width: width, colour: hasColour(getenv), blocks: hasBlocks(getenv)}
}

// hasBlocks reports whether the locale of a terminal is one of UTF-8. The first variable that is set counts.
func hasBlocks(getenv func(string) string) bool {
	locale := strings.ToUpper(cmp.Or(getenv("LC_ALL"), getenv("LC_CTYPE"), getenv("LANG")))
	return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
}

// hasColour reports whether a terminal shows colours. The old console of Windows shows their codes.
func hasColour(getenv func(string) string) bool {
	old := runtime.GOOS == "windows" && getenv("WT_SESSION") == ""
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && !old
}

// isTerminal reports whether the stream is a terminal. The null device looks like a terminal but is not one.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// style is how a word is shown where there are colours. No meaning is in the colour alone.
type style string

const (
	plain  style = ""
	dim    style = "2"
	bold   style = "1"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

// paint shows a text in a style. The text is escaped already.
func (s screen) paint(text string, as style) string {
	if !s.colour || as == plain || text == "" {
		return text
	}
	return "\x1b[" + string(as) + "m" + text + "\x1b[0m"
}

// styleOf is the style of the status of a task.
func styleOf(status delaytask.Status) style {
	switch status {
	case delaytask.Completed:
		return green
	case delaytask.Failed:
		return red
	case delaytask.Cancelled:
		return dim
	default:
		return plain
	}
}

func styleOfSeverity(s doctor.Severity) style {
	switch s {
	case doctor.Critical:
		return red
	case doctor.Warning:
		return yellow
	default:
		return dim
	}
}
