package sqlstore

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/delaytask/delaytask/internal/row"
)

// batch builds one UPDATE of many rows of delay_task_message, entered by the primary key. What is the same for all rows
// is bound once. What differs stands in lists with one value for each id. Where the dialect has no function that picks
// from a list, it stands in a derived table v that is joined by id.
type batch struct {
	dialect dialect
	ids     []int64
	columns []derived
	sets    []clause
	guards  []clause
}

// derived is a column of the derived table, with one value per row: int64, [row.Time], string or nil.
type derived struct {
	name, bind string
	values     []any
}

// batchOf begins a batch of the items, and returns what lists a value of each. It sorts them by id: all writers lock
// rows in the same order.
func batchOf[T any](d dialect, items []T, id func(T) int64) (*batch, func(of func(*T) any) []any) {
	items = sortedByID(items, id)
	return &batch{dialect: d, ids: row.IDsOf(items, id)}, func(of func(*T) any) []any {
		values := make([]any, len(items))
		for i := range items {
			values[i] = of(&items[i])
		}
		return values
	}
}

// each returns an expression for the values, one per row.
func (b *batch) each(name, bind string, values []any) clause {
	if !slices.ContainsFunc(values, func(v any) bool { return v != values[0] }) {
		return clause{bind, values[:1]}
	}
	if b.dialect.picks {
		return b.pick(bind, values)
	}
	for _, c := range b.columns {
		if c.bind == bind && slices.Equal(c.values, values) {
			return clause{"v." + c.name, nil} // one column serves both
		}
	}
	b.columns = append(b.columns, derived{"new_" + name, bind, values})
	return clause{"v.new_" + name, nil}
}

// pick returns an expression for the value that has the same place as the row's id among all ids. INTERVAL does a
// binary search, because ids ascend, and compares whole numbers exactly. An UPDATE of one table costs the server a
// third less than one that is joined with its values: the server makes no table of them, and remembers no rows to
// change.
func (b *batch) pick(bind string, values []any) clause {
	ids := idList(b.ids)
	t := new(text)
	t.grow(len(ids)+32*len(values), 0)
	t.write("ELT(INTERVAL(t.id, ")
	t.write(ids)
	t.write(")")
	numbers := true
	for _, v := range values {
		t.write(", ")
		t.value(bind, v)
		if _, number := v.(int64); v != nil && !number {
			numbers = false
		}
	}
	t.write(")")
	picked := clause{t.sql.String(), t.args}
	if numbers { // ELT returns text
		picked.sql = "CAST(" + picked.sql + " AS SIGNED)"
	}
	return picked
}

// set assigns an expression. A %s in it stands for the value. Guards see the old row. An assignment must not read a
// column that another one writes: MySQL would return the new value.
func (b *batch) set(name, format string, value clause) {
	b.sets = append(b.sets, clause{name + " = " + fmt.Sprintf(format, value.sql), value.args})
}

// setEach assigns one value to each row.
func (b *batch) setEach(name, bind string, values []any) {
	b.set(name, "%s", b.each(name, bind, values))
}

// setGiven assigns one value to each row, and keeps what is stored where the value is nil.
func (b *batch) setGiven(name, bind string, values []any) {
	if slices.ContainsFunc(values, func(v any) bool { return v != nil }) {
		b.set(name, "COALESCE(%s, "+name+")", b.each(name, bind, values))
	}
}

func (b *batch) setNow(name string) {
	b.sets = append(b.sets, clause{sql: name + " = " + b.dialect.now})
}

func (b *batch) guard(format string, value clause) {
	b.guards = append(b.guards, clause{fmt.Sprintf(format, value.sql), value.args})
}

func (b *batch) statement() clause {
	sets, guards := joined(b.sets, ", "), joined(b.guards, " AND ")
	args := slices.Concat(sets.args, guards.args)
	if len(b.columns) == 0 {
		where := "t.id IN (" + idList(b.ids) + ") AND " + guards.sql
		return clause{fmt.Sprintf(b.dialect.updateListed, sets.sql, where), args}
	}
	names := "id"
	for _, c := range b.columns {
		names += ", " + c.name
	}
	rows := b.rows()
	query := fmt.Sprintf(b.dialect.updateJoined, names, rows.sql.String(), sets.sql, guards.sql)
	return clause{query, append(rows.args, args...)}
}

// rows writes the derived table. Numbers are written out: a bound parameter in a SELECT list has no type, and a server
// that takes it for text would compare ids as floating point.
func (b *batch) rows() *text {
	d := b.dialect
	t := new(text)
	t.write(d.rowsOpen)
	for i, id := range b.ids {
		if i > 0 {
			t.write(d.rowsNext)
		}
		t.number(id)
		for _, c := range b.columns {
			t.write(", ")
			t.value(c.bind, c.values[i])
		}
	}
	t.write(d.rowsClose)
	return t
}

func sortedByID[T any](items []T, id func(T) int64) []T {
	return slices.SortedFunc(slices.Values(items), func(a, b T) int { return cmp.Compare(id(a), id(b)) })
}

func sortedIDs[T any](items []T, id func(T) int64) []int64 { return row.Distinct(row.IDsOf(items, id)) }
