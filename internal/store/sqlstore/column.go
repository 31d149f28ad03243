package sqlstore

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
)

// tableOf is a table whose rows are decoded into a T.
type tableOf[T any] struct {
	name    string
	columns []column[T]
	byName  map[string]column[T]
}

func newTable[T any](name string, columns ...column[T]) *tableOf[T] {
	t := &tableOf[T]{name, columns, make(map[string]column[T], len(columns))}
	for _, c := range columns {
		t.byName[c.name] = c
	}
	return t
}

// pick returns the columns in the order of their names.
func (t *tableOf[T]) pick(names ...string) []column[T] {
	columns := make([]column[T], len(names))
	for i, name := range names {
		columns[i] = t.byName[name]
	}
	return columns
}

// list selects the columns with the names, or all.
func (t *tableOf[T]) list(d dialect, alias string, names ...string) string {
	if len(names) == 0 {
		return selectList(d, alias, t.columns)
	}
	return selectList(d, alias, t.pick(names...))
}

// column is a column of a table. One that is not read has no decode, and one that no INSERT binds has no value.
type column[T any] struct {
	name   string
	form   form
	value  func(*T) any               // what is stored: an int64, a [row.Time], a string or nil
	write  func(*text, *T)            // writes what value returns, faster; nil: there is no faster way
	decode func(*decoder, *T, []byte) // a value that cannot be decoded makes the field zero
	unset  func(*T) bool              // the field is zero
	same   func(r, first *T) bool     // both fields are equal
	read   reading                    // of a task
	save   saving                     // of a task
}

func (c column[T]) decoded(f func(*decoder, *T, []byte)) column[T] {
	c.decode = f
	return c
}

func (c column[T]) stored(f func(*T) any) column[T] {
	c.value = f
	return c
}

func (c column[T]) notNull() column[T] {
	decode := c.decode
	return c.decoded(func(d *decoder, r *T, raw []byte) { decode(d, r, d.notNull(c.name, raw)) })
}

func (c column[T]) as(f form) column[T] {
	c.form = f
	return c
}

func (c column[T]) with(r reading, s saving) column[T] {
	c.read, c.save = r, s
	return c
}

// reading says which reads of whole tasks have a column. Each reading has its own columns after the columns of the one
// before.
type reading uint8

const (
	byName    reading = iota // a read names it
	byAttempt                // an attempt needs it
	byOwner                  // the body, and what a claim has written itself
	byPeople
)

// saving says how an INSERT has a column. Each column costs something for every row.
type saving uint8

const (
	byTable    saving = iota // by its default
	always                   // a value for each row
	shared                   // once, where all rows have one value and the dialect selects from the values
	whereSet                 // the same, where a row sets it
	asExpected               // as expected_time: by its default, or once
	atNow                    // the time of the INSERT: by its default, or once
)

// form is how the values of a column are written and read.
type form uint8

const (
	aNumber form = iota
	aMoment
	aMomentOfRun // NULL where the column schedule is. A server converts NULL, too, and claims read many such rows
	aText
	aJSON
	aHash // bytes, which go as hexadecimal digits
)

// mark returns what stands for a value that is not written out.
func (c *column[T]) mark(d *dialect) string {
	switch {
	case c.save == atNow:
		return d.now
	case c.form == aJSON:
		return d.bindJSON
	case c.form == aHash:
		return "UNHEX(?)"
	default:
		return d.bindText
	}
}

func (f form) read(d dialect, alias, name string) string {
	switch f {
	case aNumber:
		return alias + name
	case aMoment:
		return d.time(name)
	case aMomentOfRun:
		return "CASE WHEN schedule IS NOT NULL THEN CAST(" + name + " AS CHAR) END AS " + name
	case aHash:
		return "HEX(" + alias + name + ") AS " + name
	default:
		return d.text(name)
	}
}

// field is a column that a field holds.
func field[T any, V comparable](name string, f form, at func(*T) *V, value func(V) any,
	decode func(*decoder, *T, []byte)) column[T] {
	return column[T]{
		name: name, form: f, decode: decode,
		value: func(r *T) any { return value(*at(r)) },
		unset: func(r *T) bool { return *at(r) == *new(V) },
		same:  func(r, first *T) bool { return *at(r) == *at(first) },
	}
}

type whole interface {
	~int | ~int64 | ~uint8 | ~uint32
}

func integer[T any, N whole](name string, least, most int64, at func(*T) *N) column[T] {
	c := field(name, aNumber, at, func(n N) any { return int64(n) },
		func(d *decoder, r *T, raw []byte) { *at(r) = N(d.int(name, raw, least, most)) })
	c.write = func(t *text, r *T) { t.number(int64(*at(r))) }
	return c
}

// whole64 is any number of 64 bits.
func whole64[T any](name string, at func(*T) *int64) column[T] {
	return integer(name, math.MinInt64, math.MaxInt64, at)
}

// optional is NULL for zero.
func optional[T any, N whole](name string, most int64, at func(*T) *N) column[T] {
	return field(name, aNumber, at, func(n N) any { return orNull(int64(n)) },
		func(d *decoder, r *T, raw []byte) { *at(r) = N(d.optional(name, raw, most)) })
}

// oneOf refuses a number of a later version.
func oneOf[T any, E ~string](name string, n numbers[E], at func(*T) *E) column[T] {
	return field(name, aNumber, at, func(v E) any { return n.of(v) },
		func(d *decoder, r *T, raw []byte) { *at(r) = n.at(d.int(name, raw, 0, int64(len(n)-1))) })
}

// optionalOf is NULL for the first value.
func optionalOf[T any, E ~string](name string, n numbers[E], at func(*T) *E) column[T] {
	return field(name, aNumber, at, func(v E) any { return orNull(n.of(v)) },
		func(d *decoder, r *T, raw []byte) { *at(r) = n.at(d.optional(name, raw, math.MaxUint8)) })
}

func millis[T any](name string, at func(*T) *time.Duration) column[T] {
	c := field(name, aNumber, at, func(v time.Duration) any { return v.Milliseconds() },
		func(d *decoder, r *T, raw []byte) { *at(r) = d.millis(name, raw) })
	c.write = func(t *text, r *T) { t.number(at(r).Milliseconds()) }
	return c
}

func flag[T any](name string, most int64, at func(*T) *bool) column[T] {
	return field(name, aNumber, at, func(is bool) any { return number(is) },
		func(d *decoder, r *T, raw []byte) { *at(r) = d.int(name, raw, 0, most) != 0 })
}

// moment is NULL for a time that is not set.
func moment[T any](name string, at func(*T) *row.Time) column[T] {
	c := field(name, aMoment, at, orNull[row.Time],
		func(d *decoder, r *T, raw []byte) { *at(r) = d.time(name, raw) })
	c.write = func(t *text, r *T) { t.moment(*at(r)) }
	return c
}

func chars[T any, S ~string](name string, at func(*T) *S) column[T] {
	return field(name, aText, at, func(s S) any { return string(s) },
		func(d *decoder, r *T, raw []byte) { *at(r) = S(d.notNull(name, raw)) })
}

// charsOrNull is NULL for an empty text.
func charsOrNull[T any, S ~string](name string, at func(*T) *S) column[T] {
	return field(name, aText, at, func(s S) any { return orNull(string(s)) },
		func(_ *decoder, r *T, raw []byte) { *at(r) = S(raw) })
}

func blob[T any](name string, at func(*T) *[]byte) column[T] {
	return column[T]{
		name: name, form: aText,
		value:  func(r *T) any { return textOrNull(*at(r)) },
		decode: func(_ *decoder, r *T, raw []byte) { *at(r) = bytes.Clone(raw) },
	}
}

// jsonOf is JSON of the shape S.
func jsonOf[S, T any](name string, at func(*T) *[]byte) column[T] {
	return column[T]{
		name: name, form: aJSON,
		value:  func(r *T) any { return textOrNull(*at(r)) },
		decode: func(d *decoder, r *T, raw []byte) { *at(r) = d.json(name, raw, new(S)) },
		unset:  func(r *T) bool { return *at(r) == nil },
	}
}

func hash[T any](name string, at func(*T) *[32]byte) column[T] {
	return field(name, aHash, at, func(h [32]byte) any { return hexed(h) },
		func(d *decoder, r *T, raw []byte) { *at(r) = d.hash(name, string(raw)) })
}

// list is a JSON array of strings.
func list[T any](name string, at func(*T) *[]string) column[T] {
	return column[T]{
		name: name, form: aText,
		decode: func(_ *decoder, r *T, raw []byte) { *at(r) = readList(raw) },
	}
}

func namesOf[T any](columns []column[T]) []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

const bodyColumn = "message_body"

// generated has the columns of tasks that the database computes.
var generated = []string{"active_key", "execution_time", "finish_time"}

// selectList selects the columns that are read. The alias of the table ends in a dot where it has one. Times are read
// as text and texts as their stored bytes, so that a connection's time zone, parseTime and character set change
// nothing.
func selectList[T any](d dialect, alias string, columns []column[T]) string {
	list := make([]string, 0, len(columns))
	for _, c := range columns {
		if c.decode != nil {
			list = append(list, c.form.read(d, alias, c.name))
		}
	}
	return strings.Join(list, ", ")
}

// withBodies is selectList, with NULL in place of bodies that are not asked for.
func withBodies[T any](d dialect, columns []column[T], bodies bool) string {
	at := slices.IndexFunc(columns, func(c column[T]) bool { return c.name == bodyColumn })
	if bodies {
		return selectList(d, "", columns)
	}
	return selectList(d, "", columns[:at]) + ", NULL AS " + bodyColumn + ", " + selectList(d, "", columns[at+1:])
}

// values writes the values of a row with their marks, between commas.
func values[T any](t *text, d dialect, columns []column[T], r *T) {
	for i := range columns {
		t.comma(i)
		t.value(columns[i].mark(&d), columns[i].value(r))
	}
}

// insertAll writes an INSERT of whole rows.
func insertAll[T any](t *text, verb string, d dialect, into *tableOf[T], rows []T) {
	t.write(verb + " INTO " + into.name + " (" + strings.Join(namesOf(into.columns), ", ") + ") VALUES ")
	for i := range rows {
		t.comma(i)
		t.write("(")
		values(t, d, into.columns, &rows[i])
		t.write(")")
	}
}
