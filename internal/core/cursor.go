package core

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// A cursor is a due time, an id, and a sum over both and the list. Without the sum, a cursor of another list or an
// invented one would skip tasks silently.
const cursorSize = 24

// cursorOf returns the cursor of the list behind the place.
func cursorOf(at row.Place, f *delaytask.Filter) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(at.Due))
	b = binary.BigEndian.AppendUint64(b, uint64(at.ID))
	sum := sha256.Sum256(fmt.Appendf(b, "%q %q %q %q %q", f.Order, f.Tag, f.Status, f.Key, f.App))
	return base64.RawURLEncoding.EncodeToString(append(b, sum[:cursorSize-len(b)]...))
}

// placeOf returns the place that a cursor of the list names, nil for none.
func placeOf(cursor string, f *delaytask.Filter) (*row.Place, error) {
	if cursor == "" {
		return nil, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(b) != cursorSize {
		return nil, delaytask.ErrInvalidCursor
	}
	at := row.Place{Due: row.Time(binary.BigEndian.Uint64(b)), ID: int64(binary.BigEndian.Uint64(b[8:]))}
	if cursorOf(at, f) != cursor {
		return nil, delaytask.ErrInvalidCursor
	}
	return &at, nil
}
