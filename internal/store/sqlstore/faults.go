package sqlstore

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"regexp"
	"slices"
	"syscall"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/row"
)

// fault is the meaning of an error: what is known of the statement, and what an operator can do.
type fault struct {
	class row.Class
	hint  string
}

// faultOf returns ClassUnknown for errors that it does not know. A lost reply, an ended context and a broken network
// all leave open whether the statement was applied.
func faultOf(err error) fault {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		if collided(e) {
			return fault{class: row.ClassNotApplied}
		}
		return mysqlFaults[e.Number]
	}
	if e, ok := errors.AsType[sqliteError](err); ok {
		return sqliteFault(e.Code())
	}
	if e, ok := errors.AsType[*net.OpError](err); ok && e.Op == "dial" {
		return fault{row.ClassNotApplied, dialHint(e)} // nothing was sent
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		const hint = "the server's certificate is not trusted: correct it, or the tls parameter of the DSN"
		return fault{row.ClassOperator, hint}
	}
	for _, d := range driverFaults {
		if errors.Is(err, d.err) {
			return d.fault
		}
	}
	return fault{}
}

// collided reports whether the server rolled the statement back in favour of another one.
func collided(err error) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	if !ok {
		return false
	}
	engine := firstNumber.FindString(e.Message) // the number of the storage engine, or none
	return slices.Contains(collisions, e.Number) || e.Number == duringCommit && engine == engineDeadlock
}

// A member of a replication group rolls a transaction back in favour of another member's with an error during COMMIT.
// Only the engine's number in its text distinguishes it from an error of unknown outcome.
const (
	duringCommit   = 1180
	engineDeadlock = "149"
)

var firstNumber = regexp.MustCompile(`\d+`)

func dialHint(err *net.OpError) string {
	_, unresolved := errors.AsType[*net.DNSError](err)
	switch {
	case unresolved:
		return "the host name cannot be resolved: correct the DSN, or the name service"
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT):
		return "nothing listens there: start the server, or correct the address in the DSN"
	case err.Timeout():
		return "no answer: check the address, the network and the firewall"
	default:
		return "check the address in the DSN and the network"
	}
}

// AwaitLock is the hint of an error about a write that has waited for long.
const AwaitLock = "wait for the end of the backup or client that holds LOCK TABLES or FLUSH TABLES WITH READ LOCK;" +
	" SHOW FULL PROCESSLIST shows the sessions"

// Migrate is the hint of an error about missing tables or columns.
const Migrate = "run: delaytask migrate up, or set scheduler.Config{Migrate: true}"

// driverFaults holds the errors that drivers make themselves.
var driverFaults = []struct {
	err error
	fault
}{
	{driver.ErrBadConn, fault{row.ClassNotApplied, hintBadConn}},
	{mysql.ErrInvalidConn, fault{row.ClassUnknown, hintNoAnswer}},
	{sql.ErrConnDone, fault{row.ClassNotApplied, ""}},
	{sql.ErrTxDone, fault{row.ClassCaller, "the transaction was committed or rolled back before"}},
	{mysql.ErrPktTooLarge, fault{row.ClassCaller, hintPacket}},
	{mysql.ErrNoTLS, fault{row.ClassOperator, "switch TLS on at the server, or off in the DSN"}},
	{mysql.ErrNativePassword, fault{row.ClassOperator, hintAccount}},
	{mysql.ErrCleartextPassword, fault{row.ClassOperator, hintAccount}},
	{mysql.ErrOldPassword, fault{row.ClassOperator, hintAccount}},
	{mysql.ErrUnknownPlugin, fault{row.ClassOperator, hintAccount}},
	{mysql.ErrOldProtocol, fault{row.ClassOperator, hintServer}},
}

const (
	hintBadConn   = "the connection was closed, or the server is read-only, as after a failover"
	hintNoAnswer  = "the connection was lost, or no answer came in time: look at the server, and at what is between"
	hintAccount   = "check the user and the password in the DSN, and how the server lets this user log in"
	hintPrivilege = "grant the database user the missing privilege"
	hintMigrate   = "bring the schema up to date: " + Migrate
	hintIndex     = "make the index again: delaytask doctor prints the statement"
	hintDatabase  = "create the database, or correct its name in the DSN"
	hintServer    = "delaytask needs MySQL 8.0, MariaDB 10.6 or newer"
	hintVariable  = "a session variable in the DSN is not one that this server takes"
	hintDisk      = "the disk or the tablespace is full: make room"
	hintDiskFault = "the disk or the file system failed: look at the system's log"
	hintMemory    = "the server is out of memory"
	hintCorrupt   = "the table or the file is damaged: check and restore it"
	hintReadOnly  = "the server is read-only, as after a failover: it is tried again"
	hintConns     = "all connections of the server or of this user are taken: raise the limit, or use smaller pools"
	hintPacket    = "larger than the server's max_allowed_packet: shorten the body, or raise the limit"
	hintCache     = "larger than the server's max_binlog_cache_size: raise it"
	hintFile      = "the folder must exist, and this process must be allowed to write to it"
	hintSecure    = "the server takes only encrypted connections: add tls=true to the DSN"
	hintGroup     = "a replication group takes only InnoDB tables with a primary key," +
		" and no transaction that is SERIALIZABLE"
	hintNoDatabase = "the file is not a SQLite database: correct the path in the DSN"
	hintUserObject = "a trigger, view or routine on the table is broken"
)

// mysqlFaults is keyed by the numbers of MySQL, MariaDB, group replication, Galera and TiDB, which do not overlap. A
// number that is missing here is of unknown outcome. Those listed as unknown look certain and are not.
var mysqlFaults = map[uint16]fault{
	1205: {row.ClassLocked, ""}, // lock wait timeout: the statement was rolled back, its transaction was not
	3572: {row.ClassLocked, ""}, // NOWAIT found a lock

	1040: {row.ClassNotApplied, hintConns},    // too many connections
	1203: {row.ClassNotApplied, hintConns},    // max_user_connections
	1226: {row.ClassNotApplied, hintConns},    // a limit of this account
	1047: {row.ClassNotApplied, ""},           // a Galera node that is not ready
	1290: {row.ClassNotApplied, hintReadOnly}, // --read-only
	1792: {row.ClassNotApplied, hintReadOnly}, // read-only transaction
	1836: {row.ClassNotApplied, hintReadOnly}, // read-only mode
	1412: {row.ClassNotApplied, ""},           // the table's definition changed
	1615: {row.ClassNotApplied, ""},           // the prepared statement is out of date
	1637: {row.ClassNotApplied, ""},           // too many open transactions
	3032: {row.ClassNotApplied, ""},           // in offline mode, as a member that was thrown out of its group
	3796: {row.ClassNotApplied, ""},           // a member of a replication group that is not online
	4031: {row.ClassNotApplied, ""},           // closed for idleness before the statement arrived
	8022: {row.ClassNotApplied, ""},           // TiDB: commit failed and was rolled back
	8028: {row.ClassNotApplied, ""},           // TiDB: the schema changed

	1053: {row.ClassUnknown, ""}, // shutdown
	1105: {row.ClassUnknown, ""}, // no further reason
	1180: {row.ClassUnknown, ""}, // an error during COMMIT, which is no deadlock
	1317: {row.ClassUnknown, ""}, // interrupted, perhaps during COMMIT
	1927: {row.ClassUnknown, ""}, // MariaDB: the connection was killed
	1969: {row.ClassUnknown, ""}, // MariaDB: max_statement_time
	3024: {row.ClassUnknown, ""}, // max_execution_time

	1022: {row.ClassDuplicate, ""},
	1062: {row.ClassDuplicate, ""},
	1586: {row.ClassDuplicate, ""},

	1048: {row.ClassCaller, ""},         // NULL where none may be
	1118: {row.ClassCaller, ""},         // row too large
	1153: {row.ClassCaller, hintPacket}, // packet too large
	1197: {row.ClassCaller, hintCache},  // larger than max_binlog_cache_size
	1216: {row.ClassCaller, ""},         // refused by a foreign key
	1217: {row.ClassCaller, ""},         // the same
	1264: {row.ClassCaller, ""},         // number out of range
	1265: {row.ClassCaller, ""},         // truncated
	1292: {row.ClassCaller, ""},         // not a date
	1300: {row.ClassCaller, ""},         // not valid in the character set
	1366: {row.ClassCaller, ""},         // not valid for the column
	1406: {row.ClassCaller, ""},         // too long
	1441: {row.ClassCaller, ""},         // date out of range
	1442: {row.ClassCaller, ""},         // a trigger may not change the table
	1451: {row.ClassCaller, ""},         // refused by a foreign key
	1452: {row.ClassCaller, ""},         // the same
	1644: {row.ClassCaller, ""},         // refused by a trigger's SIGNAL
	1690: {row.ClassCaller, ""},         // result out of range
	1705: {row.ClassCaller, hintCache},  // larger than max_binlog_stmt_cache_size
	3140: {row.ClassCaller, ""},         // not JSON
	3144: {row.ClassCaller, ""},         // JSON in a binary string
	3819: {row.ClassCaller, ""},         // MySQL: CHECK
	4025: {row.ClassCaller, ""},         // MariaDB: CHECK
	8004: {row.ClassCaller, hintPacket}, // TiDB: transaction too large
	8025: {row.ClassCaller, hintPacket}, // TiDB: entry too large

	1045: {row.ClassOperator, hintAccount},    // access denied
	1129: {row.ClassOperator, hintAccount},    // host blocked
	1130: {row.ClassOperator, hintAccount},    // host not allowed
	1251: {row.ClassOperator, hintAccount},    // authentication method too new or too old
	1524: {row.ClassOperator, hintAccount},    // authentication plugin not loaded
	1698: {row.ClassOperator, hintAccount},    // access denied without a password
	1820: {row.ClassOperator, hintAccount},    // password must be changed
	1862: {row.ClassOperator, hintAccount},    // password expired
	3118: {row.ClassOperator, hintAccount},    // MySQL: account locked
	4151: {row.ClassOperator, hintAccount},    // MariaDB: account locked
	3159: {row.ClassOperator, hintSecure},     // require_secure_transport
	1044: {row.ClassOperator, hintPrivilege},  // no access to the database
	1142: {row.ClassOperator, hintPrivilege},  // on the table
	1143: {row.ClassOperator, hintPrivilege},  // on a column
	1227: {row.ClassOperator, hintPrivilege},  // an administrative privilege
	1370: {row.ClassOperator, hintPrivilege},  // on a routine
	1419: {row.ClassOperator, hintPrivilege},  // triggers, with the binary log on
	1046: {row.ClassOperator, hintDatabase},   // no database
	1049: {row.ClassOperator, hintDatabase},   // unknown database
	1054: {row.ClassOperator, hintMigrate},    // unknown column
	1146: {row.ClassOperator, hintMigrate},    // unknown table
	1176: {row.ClassOperator, hintIndex},      // no such index
	1364: {row.ClassOperator, hintMigrate},    // a column of unknown origin has no default
	1064: {row.ClassOperator, hintServer},     // syntax
	1115: {row.ClassOperator, hintServer},     // unknown character set
	1235: {row.ClassOperator, hintServer},     // not supported
	1273: {row.ClassOperator, hintServer},     // unknown collation
	1193: {row.ClassOperator, hintVariable},   // unknown variable
	1231: {row.ClassOperator, hintVariable},   // wrong value
	1232: {row.ClassOperator, hintVariable},   // wrong type
	1356: {row.ClassOperator, hintUserObject}, // view refers to what is gone
	1449: {row.ClassOperator, hintUserObject}, // the definer is gone
	1021: {row.ClassOperator, hintDisk},       // disk full
	1114: {row.ClassOperator, hintDisk},       // table full
	3098: {row.ClassOperator, hintGroup},      // group replication takes no such table or transaction
	1037: {row.ClassOperator, hintMemory},
	1038: {row.ClassOperator, hintMemory}, // for sorting
	1041: {row.ClassOperator, hintMemory},
	1034: {row.ClassOperator, hintCorrupt},
	1194: {row.ClassOperator, hintCorrupt},
	1195: {row.ClassOperator, hintCorrupt},
	1877: {row.ClassOperator, hintCorrupt},
	1932: {row.ClassOperator, hintCorrupt}, // table unknown to the engine

	1461: {row.ClassOperator, "raise the server's max_prepared_stmt_count"},               // too many statements
	1467: {row.ClassOperator, "the AUTO_INCREMENT of the table is used up: set it lower"}, // no next id
}

// collisions lists the faults of statements that lost against another one. None of them was applied.
var collisions = []uint16{
	1020, // changed since the snapshot: MariaDB with innodb_snapshot_isolation
	1213, // deadlock, or a conflict at certification
	3101, // group replication rolled back at certification
	8002, // TiDB: FOR UPDATE conflict
	8005, // TiDB: write conflict
	9007, // TiDB: write conflict
}

// keptFaults lists faults that a session repeats after an operator has mended their cause. A session keeps the
// privileges and the server that it got at its login.
var keptFaults = []uint16{
	1044, 1045, 1046, 1142, 1143, 1227, 1370, 1820, // privileges, account and database
	1290, 1792, 1836, // a server that is read-only
}

// sqliteError is an error of the driver of SQLite. Its code is SQLite's result code.
type sqliteError interface {
	error
	Code() int
}

// sqliteFaults is keyed by result code. An extended code that is missing means what its primary code means.
var sqliteFaults = map[int]fault{
	5:  {row.ClassNotApplied, ""}, // SQLITE_BUSY: another process writes
	6:  {row.ClassNotApplied, ""}, // SQLITE_LOCKED
	15: {row.ClassNotApplied, ""}, // SQLITE_PROTOCOL: a race for the file's locks
	17: {row.ClassNotApplied, ""}, // SQLITE_SCHEMA: the schema changed

	// A failed write or sync can have reached the disk, and then the next process to open the file finds it committed.
	10: {row.ClassUnknown, hintDiskFault}, // SQLITE_IOERR

	1555: {row.ClassDuplicate, ""}, // SQLITE_CONSTRAINT_PRIMARYKEY
	2579: {row.ClassDuplicate, ""}, // SQLITE_CONSTRAINT_ROWID
	2067: {row.ClassDuplicate, ""}, // SQLITE_CONSTRAINT_UNIQUE

	19: {row.ClassCaller, ""}, // SQLITE_CONSTRAINT: CHECK, NOT NULL, a trigger
	20: {row.ClassCaller, ""}, // SQLITE_MISMATCH
	18: {row.ClassCaller, ""}, // SQLITE_TOOBIG

	1:  {row.ClassOperator, hintMigrate},    // SQLITE_ERROR: a table or column is missing
	14: {row.ClassOperator, hintFile},       // SQLITE_CANTOPEN
	3:  {row.ClassOperator, hintFile},       // SQLITE_PERM
	8:  {row.ClassOperator, hintFile},       // SQLITE_READONLY
	13: {row.ClassOperator, hintDisk},       // SQLITE_FULL
	7:  {row.ClassOperator, hintMemory},     // SQLITE_NOMEM
	11: {row.ClassOperator, hintCorrupt},    // SQLITE_CORRUPT
	26: {row.ClassOperator, hintNoDatabase}, // SQLITE_NOTADB
}

func sqliteFault(code int) fault {
	if f, known := sqliteFaults[code]; known {
		return f
	}
	return sqliteFaults[code&0xff]
}

// classify wraps an error of a database with its class, by its number, and with what was tried. It returns nil for nil,
// and returns sql.ErrNoRows, which is an answer, and classified errors as they are.
func classify(op string, err error) error {
	if err == nil || errors.Is(err, sql.ErrNoRows) {
		return err
	}
	if _, ok := errors.AsType[*row.Error](err); ok {
		return err
	}
	f := faultOf(err)
	return &row.Error{Class: f.class, Op: op, Hint: f.hint, Err: err}
}

// notSent classifies a failure to get a connection. It cannot be of unknown outcome.
func notSent(op string, err error) error {
	err = classify(op, err)
	if e, ok := errors.AsType[*row.Error](err); ok && e.Class == row.ClassUnknown {
		e.Class = row.ClassNotApplied
	}
	return err
}

// sessionKeeps reports whether the session would repeat the fault after its cause is mended.
func sessionKeeps(err error) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && slices.Contains(keptFaults, e.Number)
}

// isFull reports whether the server has no connection left, for anyone or for this account.
func isFull(err error) bool {
	e, ok := errors.AsType[*mysql.MySQLError](err)
	return ok && mysqlFaults[e.Number].hint == hintConns
}

// isDuplicate reports whether a unique key refused the statement. The error may be the driver's or classified.
func isDuplicate(err error) bool { return isOf(err, row.ClassDuplicate) }

// isLocked reports whether the statement failed because another transaction has locked a row.
func isLocked(err error) bool { return isOf(err, row.ClassLocked) }

func isOf(err error, class row.Class) bool {
	return err != nil && row.ClassOf(classify("", err)) == class
}

// notApplied says that nothing was changed, and that the caller may try again.
func notApplied(op string, err error) error {
	return &row.Error{Class: row.ClassNotApplied, Op: op, Err: err}
}

// refusedTo says that the caller asked for what cannot be done.
func refusedTo(op string, err error) error {
	return &row.Error{Class: row.ClassCaller, Op: op, Err: err}
}

// afterWrite marks an error of what followed a write: a read of its outcome, or the next write. The first write was
// applied, so the outcome as a whole is not known, whatever the error says of the rest.
func afterWrite(op string, err error) error {
	if err == nil {
		return nil
	}
	return &row.Error{Class: row.ClassUnknown, Op: op, Err: err}
}

// repeats bounds the tries of a write that may be repeated. Lost replies and deadlocks are rare, and rarer twice in a
// row. The caller waits for what lasts longer.
const repeats = 3

// repeat runs a write until its outcome is known. Running it again must change nothing. A row that another process has
// written since the write looked for it is found the next time.
func repeat(ctx context.Context, write func() error) error {
	var err error
	for range repeats {
		if err = write(); err == nil || ctx.Err() != nil {
			return err
		}
		switch row.ClassOf(err) {
		case row.ClassUnknown, row.ClassNotApplied, row.ClassDuplicate:
		default:
			return err
		}
	}
	return err
}

// IsDenied reports whether the account lacks a privilege.
func IsDenied(err error) bool { return err != nil && faultOf(err).hint == hintPrivilege }
