package otlp

import (
	"net/http"
	"strconv"
	"time"
)

// longest is more than any upload waits.
const longest = 24 * time.Hour

// retryAfter is 0 where the collector does not say how long it wants to be left alone. A date is compared with the answer's own,
// whose clock made it.
func retryAfter(h http.Header, now time.Time) time.Duration {
	text := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(text, 10, 64); err == nil {
		return time.Duration(min(seconds, uint64(longest/time.Second))) * time.Second
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0
	}
	if date, err := http.ParseTime(h.Get("Date")); err == nil {
		now = date
	}
	return min(max(at.Sub(now), 0), longest)
}
