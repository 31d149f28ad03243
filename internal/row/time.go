package row

import (
	"database/sql/driver"
	"fmt"
	"math"
	"time"
)

// Time is a moment on the database's clock: microseconds since the Unix epoch, UTC. The zero value means "not set" and
// is stored as NULL. No valid moment is that early (see [MinTime]).
//
// It travels to and from the database as text, so that a connection's loc, parseTime and time_zone change nothing.
type Time int64

const timeLayout = "2006-01-02 15:04:05.000000"

// The range that every supported database stores exactly.
var (
	MinTime = At(time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC))
	MaxTime = At(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))
)

// At converts a wall-clock moment. It rounds up to the microsecond, so that a due time never moves to an earlier one.
func At(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	micros := t.UnixMicro()
	if t.Nanosecond()%1000 != 0 {
		micros++
	}
	return Time(micros)
}

// Std returns the moment in UTC. The zero Time gives the zero time.Time.
func (t Time) Std() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(t)).UTC()
}

// IsZero reports whether the moment is not set.
func (t Time) IsZero() bool { return t == 0 }

// Add returns the moment d later, rounded up to the microsecond.
func (t Time) Add(d time.Duration) Time {
	micros := d / time.Microsecond
	if d%time.Microsecond > 0 {
		micros++
	}
	return t + Time(micros)
}

// Sub returns how much later t is than u, at most what a time.Duration can hold (292 years).
func (t Time) Sub(u Time) time.Duration {
	const most = Time(math.MaxInt64 / int64(time.Microsecond))
	return time.Duration(max(min(t-u, most), -most)) * time.Microsecond
}

// String returns the moment as it is stored.
func (t Time) String() string { return string(t.Append(nil)) }

// Append appends what String returns.
func (t Time) Append(to []byte) []byte {
	if t == 0 {
		return to
	}
	return t.Std().AppendFormat(to, timeLayout)
}

// Value implements driver.Valuer.
func (t Time) Value() (driver.Value, error) {
	if t == 0 {
		return nil, nil
	}
	return t.String(), nil
}

// Scan implements sql.Scanner for the text that the database returns. NULL gives the zero Time.
func (t *Time) Scan(src any) error {
	switch v := src.(type) {
	case nil:
		*t = 0
		return nil
	case []byte:
		if moment, ok := parseStored(v); ok {
			*t = moment
			return nil
		}
		return t.parse(string(v))
	case string:
		return t.parse(v)
	default:
		return fmt.Errorf("time column arrived as %T, want text", src)
	}
}

func (t *Time) parse(s string) error {
	std, err := time.ParseInLocation("2006-01-02 15:04:05.999999", s, time.UTC)
	if err != nil {
		return fmt.Errorf("time column holds %q: %w", s, err)
	}
	*t = Time(std.UnixMicro())
	return nil
}

// fewestDays are those that each month has in every year.
var fewestDays = [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// parseStored reads the usual form several times as fast as parse: every claimed row has half a dozen times. It returns
// false for any other form, which parse reads or refuses.
func parseStored(s []byte) (Time, bool) {
	if len(s) != len(timeLayout) ||
		s[4] != '-' || s[7] != '-' || s[10] != ' ' || s[13] != ':' || s[16] != ':' || s[19] != '.' {
		return 0, false
	}
	ok := true
	number := func(from, to int) (n int) {
		for _, c := range s[from:to] {
			ok = ok && '0' <= c && c <= '9'
			n = 10*n + int(c-'0')
		}
		return n
	}
	year, month, day := number(0, 4), number(5, 7), number(8, 10)
	hour, minute, second, micros := number(11, 13), number(14, 16), number(17, 19), number(20, 26)
	// time.Date turns a day that does not exist into another one.
	if !ok || month < 1 || month > 12 || day < 1 || day > fewestDays[month-1] ||
		hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	return Time(time.Date(year, time.Month(month), day, hour, minute, second, micros*1000, time.UTC).UnixMicro()), true
}
