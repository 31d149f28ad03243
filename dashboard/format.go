package dashboard

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/delaytask/delaytask/report"
)

// stamp is a moment as a page shows it: exact, in the reader's zone, and how far away it is.
type stamp struct{ ISO, Text, Away string }

// At formats a moment. The zero time is nothing.
func (v *view) At(t time.Time) stamp {
	if t.IsZero() {
		return stamp{}
	}
	return stamp{
		ISO: t.UTC().Format("2006-01-02T15:04:05.000000Z"), Text: v.Time(t), Away: v.Away(t),
	}
}

// Time formats a moment in the reader's zone, to the millisecond.
func (v *view) Time(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.In(v.zone).Format("2006-01-02 15:04:05.000")
}

// Clock is Time without the day, for what is of today.
func (v *view) Clock(t time.Time) string { return t.In(v.zone).Format("15:04:05") }

// ClockOrTime is Clock for what is of today, and Time for the rest.
func (v *view) ClockOrTime(t time.Time) string {
	const day = time.DateOnly
	if t.In(v.zone).Format(day) == v.Now.In(v.zone).Format(day) {
		return v.Clock(t)
	}
	return v.Time(t)
}

// ZoneName is the reader's zone as it is now.
func (v *view) ZoneName() string {
	if v.zone == time.UTC {
		return "UTC"
	}
	return v.Zone + " (" + v.Now.In(v.zone).Format("UTC-07:00") + ")"
}

// Away says how far a moment is from now by the database's clock.
func (v *view) Away(t time.Time) string {
	d := max(t.Sub(v.Now), -math.MaxInt64) // what lies further back has no positive counterpart
	if d < 0 {
		return v.T("time.ago", v.Span(-d))
	}
	return v.T("time.in", v.Span(d))
}

// Span formats a duration with two units at most.
func (v *view) Span(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < 0:
		return "-" + v.Span(-max(d, -math.MaxInt64))
	case d < time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d)/float64(time.Millisecond))
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond)/time.Millisecond)
	case d < 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < time.Hour:
		return units(d, time.Minute, "min", time.Second, "s")
	case d < day:
		return units(d, time.Hour, "h", time.Minute, "min")
	default:
		return units(d, day, "d", time.Hour, "h")
	}
}

func units(d, large time.Duration, name string, small time.Duration, rest string) string {
	text := fmt.Sprintf("%d %s", d/large, name)
	if part := d % large / small; part > 0 && d/large < 10 {
		text += fmt.Sprintf(" %d %s", part, rest)
	}
	return text
}

// N formats a number with its thousands apart.
func (v *view) N(n any) string {
	var text string
	switch n := n.(type) {
	case int:
		text = strconv.Itoa(n)
	case int64:
		text = strconv.FormatInt(n, 10)
	case uint64:
		text = strconv.FormatUint(n, 10)
	default:
		return fmt.Sprint(n)
	}
	digits := strings.TrimPrefix(text, "-")
	var b strings.Builder
	b.WriteString(text[:len(text)-len(digits)])
	for i := range len(digits) {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteByte(digits[i])
	}
	return b.String()
}

// Figure writes a number with the sign of what it is worth.
func (v *view) Figure(d report.DueTasks) string {
	return map[report.Precision]string{report.About: "≈", report.AtLeast: "≥"}[d.Precision] + v.N(d.Tasks)
}

// Bytes formats a size.
func (v *view) Bytes(n int) string {
	switch {
	case n < 10_000:
		return v.N(n) + " B"
	case n < 10<<20:
		return v.N(n>>10) + " KiB"
	default:
		return v.N(n>>20) + " MiB"
	}
}

// shapes stand beside the colours, which some readers cannot tell apart.
var shapes = map[string]string{
	"pending": "○", "executing": "▶", "completed": "✓", "failed": "✕", "cancelled": "⊘", "overdue": "!", "paused": "‖",
}

// Shape is the sign of a status or of what looks like one, "?" for another.
func (*view) Shape(status any) string {
	if shape := shapes[fmt.Sprint(status)]; shape != "" {
		return shape
	}
	return "?"
}

// Redacted is a text of a task of the tag without what looks like a secret.
func (v *view) Redacted(tag, text string) string { return v.o.Redact(tag, text) }

// beginning is the same for the first bytes of a text. Only what is shown is masked, so that a list of long texts is
// there at once.
func (v *view) beginning(tag, text string, limit int) string {
	return strings.ToValidUTF8(v.o.RedactBeginning(tag, text, limit), "�")
}

// visible writes out what a browser would not show or would show elsewhere: controls, invalid UTF-8, and what turns the
// direction of text. It works on a whole page, so no text of a task can be forgotten.
func visible(html []byte) []byte {
	if !bytes.ContainsFunc(html, deceives) && utf8.Valid(html) {
		return html
	}
	var b bytes.Buffer
	for len(html) > 0 {
		r, size := utf8.DecodeRune(html)
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, "[%02X]", html[0])
		case deceives(r):
			fmt.Fprintf(&b, "[U+%04X]", r)
		default:
			b.Write(html[:size])
		}
		html = html[size:]
	}
	return b.Bytes()
}

// deceives reports whether a rune is a control or a format character, such as those that turn the direction of text.
func deceives(r rune) bool {
	switch r {
	case '\n', '\t', '\r', '\u200d': // the last joins the parts of emoji
		return false
	case '\u2028', '\u2029':
		return true
	}
	return unicode.In(r, unicode.Cc, unicode.Cf)
}

// firstOf returns the first of all, and how many there are beside them.
func firstOf[T any](all []T, most int) (first []T, left int) {
	first = all[:min(len(all), most)]
	return first, len(all) - len(first)
}
