package sqlstore

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/delaytask/delaytask/internal/row"
)

// text is a statement that is being written. Numbers and moments are written out, which is safe and costs the server
// and the driver less than a parameter. Everything else is bound.
type text struct {
	sql     strings.Builder
	args    []any
	scratch [32]byte // of a number or a moment, no longer than 26 bytes
}

// grow makes room for bytes and parameters.
func (t *text) grow(bytes, args int) {
	t.sql.Grow(bytes)
	t.args = slices.Grow(t.args, args)
}

func (t *text) write(sql string) { t.sql.WriteString(sql) }

// comma separates the values of a list.
func (t *text) comma(place int) {
	if place > 0 {
		t.write(", ")
	}
}

func (t *text) number(n int64) { t.sql.Write(strconv.AppendInt(t.scratch[:0], n, 10)) }

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

// orNull returns nil for the zero value, which is stored as NULL.
func orNull[T comparable](v T) any {
	var zero T
	if v == zero {
		return nil
	}
	return v
}

func textOrNull(b []byte) any {
	if b == nil {
		return nil
	}
	return string(b)
}

func number(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

// bindList writes a JSON array of strings. A nil list is an empty array.
func bindList(list []string) string {
	if list == nil {
		list = []string{}
	}
	text, _ := json.Marshal(list) // strings always marshal
	return string(text)
}

// hexed writes bytes as text that no character set changes.
func hexed(hash [32]byte) string { return hex.EncodeToString(hash[:]) }

func anys[T any](items []T) []any {
	all := make([]any, len(items))
	for i, item := range items {
		all[i] = item
	}
	return all
}

// clause is a statement, or a part of one, with what it binds.
type clause struct {
	sql  string
	args []any
}

func joined(clauses []clause, sep string) clause {
	texts := make([]string, len(clauses))
	var args []any
	for i, c := range clauses {
		texts[i] = c.sql
		args = append(args, c.args...)
	}
	return clause{strings.Join(texts, sep), args}
}

// unionAll combines queries with a LIMIT each. A single one is not wrapped: a server would copy what it finds.
func unionAll(branches []clause) clause {
	if len(branches) == 1 {
		return branches[0]
	}
	for i := range branches {
		branches[i].sql = "SELECT * FROM (" + branches[i].sql + ") AS t" + fmt.Sprint(i)
	}
	return joined(branches, " UNION ALL ")
}

// quoted lists names of the schema, which hold nothing to escape.
func quoted(names []string) string { return "'" + strings.Join(names, "', '") + "'" }

// marks returns n placeholders, or other expressions, for an IN list or a VALUES row.
func marks(n int, mark string) string {
	return strings.TrimSuffix(strings.Repeat(mark+", ", n), ", ")
}

// idList writes ids for an IN list. Numbers need not be bound, which makes the text of a batch half as long.
func idList(ids []int64) string {
	var list text
	for i, id := range ids {
		list.comma(i)
		list.number(id)
	}
	return list.sql.String()
}
