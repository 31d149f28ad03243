package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
)

// Duration is a duration in a request: "500ms", "30s", "30m", "1h30m" or "7d", or a JSON number of milliseconds. It is
// never negative.
type Duration time.Duration

// Std is the duration as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// MarshalJSON writes the text form, so that a person reads it too.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(FormatDuration(time.Duration(d)))
}

// UnmarshalJSON reads a text or a whole number of milliseconds. It returns an error for anything else, and for what is
// negative or longer than 292 years.
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if len(data) > 0 && data[0] == '"' {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		return d.UnmarshalText([]byte(text))
	}
	ms, err := strconv.ParseUint(string(data), 10, 63)
	if err != nil {
		return badDuration(string(data))
	}
	return d.setMillis(ms)
}

// UnmarshalText reads a text, as query parameters have it. It returns an error for a number without a unit but 0, which
// some take for seconds and some for milliseconds.
func (d *Duration) UnmarshalText(text []byte) error {
	if n, err := strconv.ParseUint(string(text), 10, 63); err == nil {
		if n != 0 {
			return fmt.Errorf("%d has no unit: write %[1]ds or %[1]dms", n)
		}
		*d = 0
		return nil
	}
	std, err := ParseDuration(string(text))
	if errors.Is(err, ErrDurationTooLong) {
		return err
	}
	if err != nil {
		return badDuration(string(text))
	}
	*d = Duration(std)
	return nil
}

func (d *Duration) setMillis(ms uint64) error {
	if ms > math.MaxInt64/uint64(time.Millisecond) {
		return fmt.Errorf("a duration of %d ms is longer than 292 years", ms)
	}
	*d = Duration(ms) * Duration(time.Millisecond)
	return nil
}

func badDuration(s string) error {
	return fmt.Errorf("want a duration such as \"30s\", \"1h30m\" or \"7d\", or a whole number of milliseconds, got "+
		"%.40q", s)
}

// Delay is a [Duration] that may be negative where it is read: a save refuses it as a delay, not as wrong JSON.
type Delay time.Duration

// Std is the delay as the standard library has it.
func (d Delay) Std() time.Duration { return time.Duration(d) }

// MarshalJSON writes the text form.
func (d Delay) MarshalJSON() ([]byte, error) { return Duration(d).MarshalJSON() }

// UnmarshalJSON reads what [Duration] reads, and a minus before it.
func (d *Delay) UnmarshalJSON(data []byte) error {
	text := bytes.TrimPrefix(data, []byte{'-'})
	if bytes.HasPrefix(data, []byte(`"-`)) {
		text = append([]byte{'"'}, data[2:]...)
	}
	if err := (*Duration)(d).UnmarshalJSON(text); err != nil {
		return err
	}
	if len(text) < len(data) {
		*d = -*d
	}
	return nil
}

// Milliseconds is a duration as answers have it, to the microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// exact rounds to the microsecond, which is the third digit of such a number.
func exact(ms float64) time.Duration { return time.Duration(ms*1000+0.5) * time.Microsecond }

func millis(ms int64) time.Duration { return time.Duration(ms) * time.Millisecond }
