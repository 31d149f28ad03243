package main

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/server/view"
	"github.com/delaytask/delaytask/internal/wire"
)

// lateness is printed in milliseconds with a tenth: 1.3 ms.
func lateness(d time.Duration) string {
	if d >= 10*time.Second {
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(view.Milliseconds(d), 'f', 1, 64) + " ms"
}

// span is a duration for people: two units are enough of an hour, milliseconds matter in a second.
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

// sorted walks a map in the order of its names, so that the same task always prints the same.
func sorted[V any](m map[string]V) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if !yield(name, m[name]) {
				return
			}
		}
	}
}

// title begins a sentence with a word.
func title(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
