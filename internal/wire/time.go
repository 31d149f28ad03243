package wire

import (
	"fmt"
	"regexp"
	"time"
)

// Layout is how moments are written: in UTC, to the millisecond, which is the unit that punctuality is promised in.
const Layout = "2006-01-02T15:04:05.000Z"

// rfc3339 is stricter than time.Parse, which takes an hour of one digit, a comma before the fraction and zones a day away.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// Time is a moment. The zero moment is "" and left out of JSON.
type Time time.Time

// String is the moment in UTC, or "".
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return time.Time(t).UTC().Format(Layout)
}

// IsZero reports whether there is no moment.
func (t Time) IsZero() bool { return time.Time(t).IsZero() }

// Std is the moment as the standard library has it.
func (t Time) Std() time.Time { return time.Time(t) }

// MarshalText writes what String does.
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads RFC 3339 with any zone and any number of digits of a second. A leap second is no moment that computers
// know. It returns an error for anything else.
func (t *Time) UnmarshalText(text []byte) error {
	std, err := time.Parse(time.RFC3339, string(text))
	if err != nil || !rfc3339.Match(text) {
		return fmt.Errorf("want a time of RFC 3339 with its zone such as 2027-01-31T08:30:00Z, got %.40q", text)
	}
	*t = Time(std.UTC())
	return nil
}
