package webhook

import (
	"net/http"
	"strings"
	"time"
)

const longestRetryAfter = 24 * time.Hour

// retryAfter returns how long a 429 or 503 asks to be left alone, or 0 when it does not say, says "now" or a moment
// that is past: the tag's own backoff is the better answer to these. A date is compared with the answer's own, whose
// clock made it.
func retryAfter(resp *http.Response, now time.Time) time.Duration {
	if resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return 0
	}
	text := strings.TrimSpace(resp.Header.Get("Retry-After"))
	if seconds, ok := parseSeconds(text); ok {
		return seconds
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), longestRetryAfter)
}

func parseSeconds(text string) (time.Duration, bool) {
	var d time.Duration
	for _, r := range text {
		if r < '0' || r > '9' {
			return 0, false
		}
		d = min(d*10+time.Duration(r-'0')*time.Second, longestRetryAfter) // each step, so that no number is too long
	}
	return d, text != ""
}
