package wire

import (
	"errors"
	"fmt"
	"strconv"
)

// ID is the id of a task: a string in JSON. Reading takes an integer as well.
type ID int64

// ErrInvalidID is returned by [ParseID] for a text that is no id.
var ErrInvalidID = errors.New("invalid id: want a positive decimal number without sign or leading zeros")

// ParseID reads an id: decimal digits without sign, spaces or leading zeros, above 0 and below 2⁶³. It returns
// [ErrInvalidID].
func ParseID(s string) (ID, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n <= 0 || s[0] < '1' || s[0] > '9' {
		return 0, fmt.Errorf("%w, got %.40q", ErrInvalidID, s)
	}
	return ID(n), nil
}

// String is the id in decimal.
func (id ID) String() string { return strconv.FormatInt(int64(id), 10) }

// MarshalJSON writes a string.
func (id ID) MarshalJSON() ([]byte, error) { return []byte(`"` + id.String() + `"`), nil }

// UnmarshalJSON reads a string or an integer, never by way of a float. It returns [ErrInvalidID].
func (id *ID) UnmarshalJSON(data []byte) (err error) {
	text := string(data)
	if n := len(text); n >= 2 && text[0] == '"' && text[n-1] == '"' {
		text = text[1 : n-1]
	}
	*id, err = ParseID(text)
	return err
}
