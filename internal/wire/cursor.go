package wire

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
)

// Cursor is where a page of a list begins: behind an id, and within one filter. Its text holds the id, and a sum over it and the
// filter: one that belongs to another list, or was made up, would skip tasks in silence.
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
