package processor

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxTag      = 128 // bytes
	maxKey      = 255 // characters
	maxAttempts = 1_000_000
	maxPriority = 100
	maxHeaders  = 16 << 10 // bytes as JSON
	minTTR      = time.Second
	maxTTR      = 24 * time.Hour

	// reservedKeys begin the keys of tasks whose ids are unique over all tags, and appKeys those of tasks that belong to
	// an application, as they are stored. A caller's key must never meet one.
	reservedKeys = "s3:"
	appKeys      = "delaytask-app:"
	maxAppKey    = maxKey - len(appKeys) - len("|") // characters of an app and a key
)

var (
	earliest = time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC)
	// latest is the last microsecond: whatever comes after it would be rounded up into the year 9999.
	latest = time.Date(9998, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
)

// ValidTag reports whether s can be a tag: 1–128 bytes of A–Z a–z 0–9 . _ - : /
func ValidTag(s string) bool {
	if len(s) < 1 || len(s) > maxTag {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && strings.IndexByte("._-:/", c) < 0 {
			return false
		}
	}
	return true
}

func checkKey(key string) error {
	// Bytes first: counting the characters of a key of megabytes is wasted work.
	if len(key) > maxKey*utf8.UTFMax || utf8.RuneCountInString(key) > maxKey {
		return fmt.Errorf("%w: it is too long", ErrInvalidKey)
	}
	if !utf8.ValidString(key) {
		return fmt.Errorf("%w: it is not valid UTF-8", ErrInvalidKey)
	}
	if strings.HasPrefix(key, reservedKeys) || strings.HasPrefix(key, appKeys) {
		return fmt.Errorf("%w: the beginning is reserved", ErrInvalidKey)
	}
	return nil
}

func checkDelay(d time.Duration) (time.Duration, error) {
	if d < 0 {
		return 0, fmt.Errorf("%w: got %v", ErrInvalidDelay, d)
	}
	if d > longestDelay {
		return 0, fmt.Errorf("%w: got %v", ErrDelayTooLong, d)
	}
	return roundUp(d), nil
}

func checkTime(t time.Time) error {
	switch {
	case t.IsZero():
		return fmt.Errorf("%w: it is not set", ErrInvalidTime)
	case t.Before(earliest):
		return fmt.Errorf("%w: got %v", ErrInvalidTime, t)
	case t.After(latest):
		return fmt.Errorf("%w: got %v", ErrDelayTooLong, t)
	}
	return nil
}

func checkTTR(d time.Duration) (time.Duration, error) {
	if d < 0 || d > maxTTR {
		return 0, fmt.Errorf("%w: got %v", ErrInvalidTTR, d)
	}
	if d == 0 {
		return 0, nil
	}
	return roundUp(max(d, minTTR)), nil
}

func checkMaxAttempts(n int) error {
	if n < 0 || n > maxAttempts {
		return fmt.Errorf("%w: got %d", ErrInvalidMaxAttempts, n)
	}
	return nil
}

func checkHeaders(headers map[string]string) error {
	for name, value := range headers {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fmt.Errorf("%w: header %q is not valid UTF-8", ErrInvalidHeaders, name)
		}
	}
	encoded, err := json.Marshal(headers)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidHeaders, err)
	}
	if len(encoded) > maxHeaders {
		return fmt.Errorf("%w: they take %d bytes", ErrInvalidHeaders, len(encoded))
	}
	return nil
}

// roundUp makes whole milliseconds, which is what the row holds.
func roundUp(d time.Duration) time.Duration {
	if rest := d % time.Millisecond; rest > 0 {
		return d - rest + time.Millisecond
	}
	return d
}
