package sqlstore

import (
	"context"
	"strings"
)

// dialect holds what differs between the two kinds of database. Expressions with a verb take the expression they work on.
type dialect struct {
	now      string // the time that decides
	server   string // who answers
	greatest string // function: the later of two times, the larger of two numbers
	add      string // time %[1]s plus %[2]s milliseconds
	lease    string // assigns a lease of %[2]s milliseconds that begins at %[1]s, and that begin where there was no start

	bindText string // placeholder for text: stores the bytes it is given whatever the character set of the connection
	bindJSON string // the same for a JSON column
	readText string // the stored bytes of %s
	sameText string // %s equals the text that is bound

	exactTag string // condition: no tag that equals one only because spaces at its end do not count

	byID  string // hint: enter by primary key
	byDue string // hint: enter by the index (status, tag, due_time)
	byKey string // hint: enter by active_key

	secondValue string // of a row of VALUES that an INSERT selects from; empty: it does not, each row carries everything

	picks                         bool   // ELT and INTERVAL pick a row's value from a list; otherwise a derived table is joined:
	rowsOpen, rowsNext, rowsClose string // around and between its rows
	updateJoined                  string // fenced update: %[1]s columns, %[2]s rows, %[3]s assignments, %[4]s guards
	updateListed                  string // the same without derived table: %[1]s assignments, %[2]s ids and guards
	deleteFrom                    string // up to the WHERE, table %s
	upsert                        string // after an INSERT into a table with the key %s, before the assignments

	oldest string // tags that have rows of status ?, each with its smallest due time, at a cost per tag and not per row

	counter string // tells the id of the next plain INSERT, as a counter
	countOn string // makes the database number rows from the largest id on

	hashesKeys bool // active_key is a hash, not the plain bytes

	inTransaction func(context.Context, execer) (bool, error)

	columns  string // of table ?: name, and whether an INSERT must give it a value
	timeType string // of a moment

	rowLocks bool     // another transaction can hold a lock on a single row
	reserves bool     // lanes keep connections of their own
	session  []string // sets up a reserved connection
}

func dialectOf(kind Kind) dialect {
	if kind == SQLite {
		return sqliteDialect
	}
	return mysqlDialect
}

// onOwnSession is the dialect of a connection whose character set is ours: text needs no protection from it.
func (d dialect) onOwnSession() dialect {
	d.bindText, d.bindJSON = "?", "?"
	if d.reserves {
		d.readText = "%s"
	}
	return d
}

const table = "delay_task_message"

// marks returns n placeholders, or other expressions, for an IN list or a VALUES row.
func marks(n int, mark string) string {
	return strings.TrimSuffix(strings.Repeat(mark+", ", n), ", ")
}
