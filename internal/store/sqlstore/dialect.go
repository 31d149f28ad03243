package sqlstore

import (
	"context"
	"fmt"

	"github.com/delaytask/delaytask/internal/row"
)

// Kind is a kind of database: which SQL dialect it speaks.
type Kind uint8

const (
	MySQL  Kind = iota + 1 // MySQL, MariaDB, and servers compatible with them
	SQLite                 // embedded
)

// Embedded reports whether the database runs inside of this process, on the clock of this machine.
func (k Kind) Embedded() bool { return k == SQLite }

func (k Kind) String() string {
	switch k {
	case MySQL:
		return "mysql"
	case SQLite:
		return "sqlite"
	default:
		return "unknown"
	}
}

// dialect holds what differs between the kinds of database. All statements are written once, from its expressions. An
// expression with a verb takes the expressions that it works on.
//
// Besides a value of this type a new dialect needs:
//   - a [Kind], by its name, by [KindOf] and by dialectOf. KindOf takes what answers SELECT VERSION() for MySQL;
//     PostgreSQL answers it, too;
//   - a form of DSN and a way to open it: [Target];
//   - a package like sqlite of the root, by whose import a program links the driver, and leave in testkit/arrows for
//     what imports the driver;
//   - the classes of its errors: faultOf, and sessionKeeps for errors that a session repeats;
//   - with rowLocks, a way to find locked rows: [Store.Locked], where lockedBySkipping relies on reads of uncommitted
//     rows, and the clauses that [Store.LockActive] adds;
//   - statements that are written with ?: a placeholder of its own wants a rewrite in the lanes and reads, and in
//     onOwnSession; UNHEX and CAST(… AS CHAR), which many files write for all kinds;
//   - the refusals after which a session is used again: lane.reusable, and collided in faults.go;
//   - what follows a refused INSERT in a caller's transaction: package save reads there (tx.go);
//   - migrations that end in the same tables and columns: a tree in package migrations, named by [Kind.String], whose
//     active_key is what activeKey computes;
//   - in package migrations also a table of versions, a lock for processes that migrate at once, its kind in tree, and
//     the errors of such processes in collided;
//   - what [Inspector] asks: variables, account, open transactions (INNODB_TRX), or [Inspector.Pragma]. Package doctor
//     chooses by the kind what it looks for, and whether the database has a clock of its own;
//   - its parts of [Store.Check] and [Store.CheckService]: startChecks and serviceChecks;
//   - `--for` of the command, raw statements of package bench, docs/database.md, a job of the continuous integration;
//   - a kind of server in package dbtest. The suites of storetest, the plans and the migrations then run on it.
type dialect struct {
	kind Kind

	now      string // the time that decides
	server   string // identity of the server that answers
	greatest string // function: the later of two times, the larger of two numbers
	add      string // time %[1]s plus %[2]s milliseconds
	// Assigns a lease of %[2]s milliseconds that begins at %[1]s, and that begin as the start where there was none.
	lease string

	bindText string // placeholder for text: stores the bytes it is given whatever the character set of the connection
	bindJSON string // the same for a JSON column
	readText string // the stored bytes of %s
	bytes    string // type whose characters are bytes
	sameText string // %s equals the text that is bound
	bindName string // placeholder for text that is looked for by an index, whatever the character set of the connection

	exactTag string // condition: rules out tags that are equal only because spaces at the end do not count
	hasPlace string // condition: rules out rows written by hand whose due time has no place in the order of moments

	checksum string // function: CRC-32 of a text, or of the digits of a number

	byID  string // hint: enter by primary key
	byDue string // hint: enter by the index (tag, status, due_time)
	byKey string // hint: enter by active_key
	by    string // hint: enter by the index %s

	// Name of the second column of VALUES that an INSERT selects from. Empty: each row of the INSERT has all values,
	// except for times that the table computes at a lower cost.
	secondValue string

	// ELT and INTERVAL pick a row's value from a list. Otherwise a derived table is joined.
	picks                         bool
	rowsOpen, rowsNext, rowsClose string // around and between the rows of the derived table
	updateJoined                  string // fenced update: %[1]s columns, %[2]s rows, %[3]s assignments, %[4]s guards
	updateListed                  string // the same without derived table: %[1]s assignments, %[2]s ids and guards
	deleteFrom                    string // up to the WHERE, table %s
	upsert                        string // after an INSERT into a table with the key tag, before the assignments

	// Tags that have rows where the conditions hold, each with the MIN or MAX of due_time, at a cost per tag.
	eachFirst func(function string, where clause) clause
	// eachFirstID is the same with ids in place of due times.
	eachFirstID func(function string, where clause) clause

	oldest string // tags that have rows of status ?, each with its smallest due time, at a cost per tag and not per row

	// Counts the rows of the cells of a grid, where it capsCells up to most of each.
	countDue  func(d dialect, g row.DueGrid, most int) clause
	capsCells bool
	limits    bool // the server ends a read after the time that the statement says
	estimates bool // EXPLAIN tells how many entries a range of an index has, without reading them

	counter string // selects the id of the next plain INSERT, as a counter
	countOn string // makes the database number new rows from the largest id on

	explain      func(context.Context, queryer, planned) (keys []string, sorted bool, err error)
	indexes      []Index
	indexColumns string // selects the columns of all indexes, in their order
	replaceIndex string // formats the statement that replaces an index: table, name, "UNIQUE " or "", columns

	hashesKeys bool // active_key is a hash, not the plain bytes

	inTransaction func(context.Context, execer) (bool, error)
	begin         string // begins a transaction that is going to write

	columns  string // of the tables %s: table, name, and whether an INSERT must give it a value
	timeType string // of a moment

	rowLocks bool     // another transaction can hold a lock on a single row
	reserves bool     // writes keep connections of their own
	session  []string // sets up a connection of these
}

// onOwnSession returns the dialect of a connection of a lane. Its character set is known, so text needs no protection.
func (d dialect) onOwnSession() dialect {
	d.bindText, d.bindJSON, d.bindName = "?", "?", "?"
	if d.reserves {
		d.readText = "%s"
	}
	return d
}

// reading selects the clock and the server that answers, as db_time and db_server.
func (d dialect) reading() string {
	return "CAST(" + d.now + " AS CHAR) AS db_time, " + d.server + " AS db_server"
}

func (d dialect) text(name string) string { return fmt.Sprintf(d.readText, name) + " AS " + name }

func (d dialect) time(name string) string { return "CAST(" + name + " AS CHAR) AS " + name }

// inMillis is an expression for the time ms milliseconds from now.
func (d dialect) inMillis(ms string) string { return fmt.Sprintf(d.add, d.now, ms) }

// isOld takes one parameter, the age in milliseconds as a negative number.
func (d dialect) isOld(column string) string { return column + " < " + d.inMillis("?") }

func (d dialect) deleteRows(from, where string, args ...any) clause {
	return clause{fmt.Sprintf(d.deleteFrom, from) + " WHERE " + where, args}
}
