package main

import (
	"cmp"
	"io"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

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

func (a *app) screenOf(stdout io.Writer) screen {
	if !isTerminal(stdout) {
		return screen{}
	}
	width, _, err := term.GetSize(int(stdout.(*os.File).Fd()))
	if err != nil {
		width = 0
	}
	return screen{width: width, colour: a.hasColour(), blocks: a.hasBlocks()}
}

// hasBlocks reports whether the locale of a terminal is one of UTF-8. The first variable that is set counts.
func (a *app) hasBlocks() bool {
	locale := strings.ToUpper(cmp.Or(a.getenv("LC_ALL"), a.getenv("LC_CTYPE"), a.getenv("LANG")))
	return strings.Contains(locale, "UTF-8") || strings.Contains(locale, "UTF8")
}

// hasColour reports whether a terminal shows colours. The old console of Windows shows their codes.
func (a *app) hasColour() bool {
	old := runtime.GOOS == "windows" && a.getenv("WT_SESSION") == ""
	return a.getenv("NO_COLOR") == "" && a.getenv("TERM") != "dumb" && !old
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

// localLayout is RFC 3339 in local time, which all flags for times read as well.
const localLayout = "2006-01-02T15:04:05.000Z07:00"

// moment shows a time to people: in local time with its zone. JSON has UTC.
func moment(t time.Time) string { return momentIn(t, time.Local) }

// momentIn is moment for a time of a schedule, which has a zone of its own.
func momentIn(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return ""
	}
	return t.In(zone).Format(localLayout)
}

// localTimes shows the times of a sentence as moment does.
func localTimes(text string) string { return timesIn(text, time.Local) }

// timesIn shows the times of a sentence as momentIn does.
func timesIn(text string, zone *time.Location) string {
	return utcTimes.ReplaceAllStringFunc(text, func(found string) string {
		t, err := time.Parse(time.RFC3339, found)
		if err != nil {
			return found
		}
		return momentIn(t, zone)
	})
}

var utcTimes = regexp.MustCompile(`\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
