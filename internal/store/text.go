package store

import (
	"strconv"

	"github.com/delaytask/delaytask/internal/row"
)

// text is a statement that is being written. Numbers and moments are written out, which is safe and costs the server and the
// driver less than a parameter; everything else is bound.
type text struct {
	sql  []byte
	args []any
}

func (t *text) write(sql string) { t.sql = append(t.sql, sql...) }
func (t *text) number(n int64)   { t.sql = strconv.AppendInt(t.sql, n, 10) }
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
	t.sql = append(t.sql, '\'')
	t.sql = m.Append(t.sql)
	t.sql = append(t.sql, '\'')
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
