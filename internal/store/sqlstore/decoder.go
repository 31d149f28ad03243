package sqlstore

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// decoder keeps the first error of a row.
type decoder struct{ err error }

var errNull = errors.New("is NULL")

func (d *decoder) fail(column string, err error) {
	if d.err == nil {
		d.err = fmt.Errorf("column %s: %w", column, err)
	}
}

func (d *decoder) notNull(column string, raw []byte) []byte {
	if raw == nil {
		d.fail(column, errNull)
	}
	return raw
}

func (d *decoder) int(column string, raw []byte, least, most int64) int64 {
	n, err := strconv.ParseInt(string(d.notNull(column, raw)), 10, 64)
	if err == nil && (n < least || n > most) {
		err = fmt.Errorf("%d is out of range", n)
	}
	if err != nil {
		d.fail(column, err)
		return 0
	}
	return n
}

// usedUp is a version that no task reaches. The next one may exceed the column.
const usedUp = 1 << 62

// version returns a version that is used up too, as far as an int64 holds it, so that the row can be named.
func (d *decoder) version(raw []byte) int64 {
	if n, err := strconv.ParseUint(string(raw), 10, 64); err == nil && n >= usedUp {
		d.fail("version", fmt.Errorf("%d is out of range", n))
		return int64(min(n, math.MaxInt64))
	}
	return d.int("version", raw, 0, usedUp)
}

// optional is int for a column where NULL means zero.
func (d *decoder) optional(column string, raw []byte, most int64) int64 {
	if raw == nil {
		return 0
	}
	return d.int(column, raw, 0, most)
}

const maxMillis = int64(math.MaxInt64 / time.Millisecond)

func (d *decoder) millis(column string, raw []byte) time.Duration {
	return time.Duration(d.int(column, raw, 0, maxMillis)) * time.Millisecond
}

func (d *decoder) time(column string, raw []byte) (t row.Time) {
	if raw == nil {
		return 0
	}
	if err := t.Scan(raw); err != nil {
		d.fail(column, err)
	}
	return t
}

// json checks that raw decodes into shape, and returns it compact: a server may store JSON in another form.
func (d *decoder) json(column string, raw []byte, shape any) []byte {
	if raw == nil {
		return nil
	}
	var out bytes.Buffer
	if err := cmp.Or(json.Unmarshal(raw, shape), json.Compact(&out, raw)); err != nil {
		d.fail(column, err)
		return nil
	}
	return out.Bytes()
}

// The shapes of JSON.
type (
	members  = map[string]json.RawMessage
	elements = []json.RawMessage
)

// hash reads a hash in hexadecimal.
func (d *decoder) hash(column, text string) (hash [32]byte) {
	b, err := hex.DecodeString(text)
	if err == nil && len(b) != len(hash) {
		err = fmt.Errorf("%d bytes are no hash", len(b))
	}
	if err != nil {
		d.fail(column, err)
		return hash
	}
	return [32]byte(b)
}

// unhexed reads hexadecimal. It returns nil for NULL, which SQLite writes as an empty text.
func unhexed(text []byte) []byte {
	b, err := hex.DecodeString(string(text))
	if err != nil || len(b) == 0 {
		return nil
	}
	return b
}

// readList reads a JSON array of strings. It returns nil for anything else.
func readList(text []byte) []string {
	var list []string
	if err := json.Unmarshal(text, &list); err != nil {
		return nil // list may hold the strings before a wrong element
	}
	return list
}
