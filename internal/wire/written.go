package wire

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
)

const day = 24 * time.Hour

// ErrDurationTooLong is returned by [ParseDuration] for a duration that a time.Duration cannot hold.
var ErrDurationTooLong = errors.New("the longest duration is 106751d (292 years)")

// wellFormed is what time.ParseDuration reads when it is not too long.
var wellFormed = regexp.MustCompile(`^(\d+(\.\d*)?(ns|us|µs|ms|s|m|h))+$`)

// ParseDuration reads what time.ParseDuration reads, and days before it: 7d, 1d12h, 90s. A day has 24 hours. It returns
// [ErrDurationTooLong], or another error for anything else and for a negative duration.
func ParseDuration(s string) (time.Duration, error) {
	days, rest, err := cutDays(s)
	if err != nil {
		return 0, err
	}
	if rest == "" {
		return days, nil
	}
	d, err := time.ParseDuration(rest)
	if wellFormed.MatchString(rest) && (err != nil || days+d < days) {
		return 0, tooLong(s)
	}
	if err != nil || d < 0 || strings.HasPrefix(rest, "+") {
		return 0, badlyWritten(s)
	}
	return days + d, nil
}

// FormatDuration writes d so that [ParseDuration] reads it back, without parts that are zero.
func FormatDuration(d time.Duration) string {
	var b strings.Builder
	if days := d / day; days > 0 {
		fmt.Fprintf(&b, "%dd", days)
		d -= days * day
		if d == 0 {
			return b.String()
		}
	}
	rest := d.String()
	if strings.HasSuffix(rest, "m0s") {
		rest = strings.TrimSuffix(rest, "0s")
	}
	if strings.HasSuffix(rest, "h0m") {
		rest = strings.TrimSuffix(rest, "0m")
	}
	b.WriteString(rest)
	return b.String()
}

// cutDays takes a leading number of days off. What is left is empty only after days.
func cutDays(s string) (days time.Duration, rest string, err error) {
	number, rest, ok := strings.Cut(s, "d")
	if !ok {
		if s == "" {
			return 0, "", badlyWritten(s)
		}
		return 0, s, nil
	}
	n, err := strconv.ParseUint(number, 10, 64)
	if errors.Is(err, strconv.ErrRange) || n > uint64(math.MaxInt64/day) {
		return 0, "", tooLong(s)
	}
	if err != nil {
		return 0, "", badlyWritten(s)
	}
	return time.Duration(n) * day, rest, nil
}

func tooLong(s string) error { return fmt.Errorf("%w, got %.40q", ErrDurationTooLong, s) }

func badlyWritten(s string) error {
	return fmt.Errorf("want a duration such as 500ms, 30s, 5m, 1h30m or 7d, got %q", s)
}
