package wire

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// Layout is the format of moments: in UTC, to the millisecond, the unit of punctuality.
const Layout = "2006-01-02T15:04:05.000Z"

// rfc3339 is stricter than time.Parse, which takes an hour of one digit, a comma before the fraction and zones a day
// away.
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

// Written reports whether the layouts can write the moment: in UTC its year has four digits.
func Written(t time.Time) bool {
	year := t.UTC().Year()
	return year >= 0 && year <= 9999
}

// UnmarshalText reads RFC 3339 with any zone and any number of digits of a second. It returns an error for anything
// else, for a leap second, and for what is in another year than 0 to 9999 in UTC.
func (t *Time) UnmarshalText(text []byte) error {
	std, err := time.Parse(time.RFC3339, string(text))
	if err != nil || !rfc3339.Match(text) || !Written(std) {
		return fmt.Errorf("want a time of RFC 3339 with its zone such as 2027-01-31T08:30:00Z, got %.40q", text)
	}
	*t = Time(std.UTC())
	return nil
}

// Moment is a moment in a request: a text of RFC 3339, or the time since 1970 as a whole number, see [Epoch].
type Moment Time

// Std is the moment as the standard library has it.
func (m Moment) Std() time.Time { return time.Time(m) }

// MarshalText writes RFC 3339 in UTC, to the millisecond.
func (m Moment) MarshalText() ([]byte, error) { return Time(m).MarshalText() }

// UnmarshalJSON reads a text or a whole number.
func (m *Moment) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		return m.UnmarshalText(data)
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	return m.UnmarshalText([]byte(text))
}

// UnmarshalText reads RFC 3339 as [Time] does, or the digits of a whole number, as query parameters have it.
func (m *Moment) UnmarshalText(text []byte) error {
	if at, ok := Epoch(string(text)); ok {
		*m = Moment(at)
		return nil
	}
	if (*Time)(m).UnmarshalText(text) == nil {
		return nil
	}
	return fmt.Errorf("want a time of RFC 3339 with its zone such as 2027-01-31T08:30:00Z, or the seconds (10 "+
		"digits), milliseconds (13) or microseconds (16) since 1970, got %.40q", text)
}

// Epoch reads a whole number of seconds, milliseconds or microseconds since 1970 in UTC. The number of digits tells
// which: 10, 13 or 16. Each covers 2001-09-09 to 2286-11-20, so none can be taken for another. It returns false for
// anything else.
func Epoch(digits string) (time.Time, bool) {
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || digits[0] == '0' {
		return time.Time{}, false
	}
	switch len(digits) {
	case 10:
		return time.Unix(int64(n), 0).UTC(), true
	case 13:
		return time.UnixMilli(int64(n)).UTC(), true
	case 16:
		return time.UnixMicro(int64(n)).UTC(), true
	default:
		return time.Time{}, false
	}
}

// NotBefore rounds up to a millisecond, so that a task is never early.
func NotBefore(t time.Time) *Moment {
	rounded := t.Truncate(time.Millisecond)
	if rounded.Before(t) {
		rounded = rounded.Add(time.Millisecond)
	}
	at := Moment(rounded)
	return &at
}
