package main

import (
	"fmt"
	"iter"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/wire"
)

// lateness formats a duration in milliseconds with a tenth: 1.3 ms.
func lateness(d time.Duration) string {
	if d >= 10*time.Second {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(wire.Milliseconds(d), 'f', 1, 64) + " ms"
}

// span formats a duration for people: with two units above an hour, with milliseconds below ten seconds.
func span(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	switch {
	case d >= 24*time.Hour:
		d = d.Truncate(time.Hour)
	case d >= time.Hour:
		d = d.Truncate(time.Minute)
	case d >= 10*time.Second:
		d = d.Truncate(time.Second)
	default:
		d = d.Truncate(time.Millisecond)
	}
	return sign + wire.FormatDuration(d)
}

func id(n int64) string { return strconv.FormatInt(n, 10) }

// counted writes "1 task" and "1,234 tasks".
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", grouped(n), noun)
}

// grouped writes a number with its thousands apart.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// sorted iterates over a map in the order of its keys, so that output is deterministic.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}

// title capitalises a word.
func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }

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

// away formats how far a time is away. A duration ends at 292 years.
func away(d time.Duration) string {
	if d == math.MaxInt64 || d == math.MinInt64 {
		return "over 292 years"
	}
	return span(d)
}
