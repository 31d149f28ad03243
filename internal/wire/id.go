package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
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

// Cursor is the beginning of a page of a list: after an id, within one filter. Its text contains the id, and a sum over
// it and the filter: a cursor of another list, or an invented one, would skip tasks silently.
type Cursor struct {
	After                       int64
	Tag, Status, Key, DueBefore string // as in the request
	App                         string
}

// String is the text that the query parameter takes.
func (c Cursor) String() string {
	id := binary.BigEndian.AppendUint64(nil, uint64(c.After))
	filter := fmt.Appendf(id, "%q %q %q %q", c.Tag, c.Status, c.Key, c.DueBefore)
	if c.App != "" {
		filter = fmt.Appendf(filter, " %q", c.App)
	}
	sum := sha256.Sum256(filter)
	return base64.RawURLEncoding.EncodeToString(append(id[:8:8], sum[:8]...))
}

// Parse sets After from a text that was made with the same filter, and reports whether it was.
func (c *Cursor) Parse(text string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) != 16 {
		return false
	}
	c.After = int64(binary.BigEndian.Uint64(raw))
	return c.After > 0 && c.String() == text
}
