package sqlstore

import (
	"slices"
	"strconv"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

// text is a statement that is being written. Numbers and moments are written out, which is safe and costs the server
// and the driver less than a parameter; everything else is bound.
type text struct {
	sql     strings.Builder
	args    []any
	scratch [32]byte // of a number or a moment, no longer than 26 bytes
}

// grow makes room for so many bytes and parameters.
func (t *text) grow(bytes, args int) {
	t.sql.Grow(bytes)
	t.args = slices.Grow(t.args, args)
}

func (t *text) write(sql string) { t.sql.WriteString(sql) }
func (t *text) number(n int64)   { t.sql.Write(strconv.AppendInt(t.scratch[:0], n, 10)) }
func (t *text) bind(mark string, value any) {
	t.write(mark)
	t.args = append(t.args, value)
}

// moment writes NULL for a time that is not set.
func (t *text) moment(m row.Time) {
	if m.IsZero() {
		t.write("NULL")
		return
	}
	t.sql.WriteByte('\'')
	t.sql.Write(m.Append(t.scratch[:0]))
	t.sql.WriteByte('\'')
}

// value writes one of the values that a batch carries: an int64, a [row.Time], or something that is bound.
func (t *text) value(mark string, value any) {
	switch v := value.(type) {
	case nil:
		t.write("NULL")
	case int64:
		t.number(v)
	case row.Time:
		t.moment(v)
	default:
		t.bind(mark, v)
	}
}
