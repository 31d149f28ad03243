package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/delaytask/delaytask/internal/row"
)

// Inspector reads what an operator wants to know of a database, and no process needs. Package doctor asks it.
type Inspector struct{ s *Store }

// Inspect returns the inspector of a store.
func Inspect(s *Store) Inspector { return Inspector{s} }

// Show returns variables or counters of a server by their names in lower case. It leaves out those that the server does
// not know.
func (i Inspector) Show(ctx context.Context, what string, names ...string) (map[string]string, error) {
	values, err := show(ctx, i.s.db, what, names...)
	return values, classify("read the settings of the server", err)
}

// Pragma returns the value of a setting of SQLite.
func (i Inspector) Pragma(ctx context.Context, name string) (value string, err error) {
	err = i.s.db.QueryRowContext(ctx, "PRAGMA "+name).Scan(&value)
	return value, classify("read a setting of the database", err)
}

// File returns the path of a SQLite database.
func (i Inspector) File(ctx context.Context) (string, error) {
	name, err := fileName(ctx, i.s.db)
	return name, classify("find the file of the database", err)
}

// Account is what a server takes this process for.
type Account struct {
	User, Host string
	Database   string
	Server     string // "MySQL", "MariaDB", "TiDB", "Vitess", or "" for another product
}

// OneServer reports whether what the server says of itself is true of all statements. Behind others there are many
// servers, each with settings, transactions and plans of its own.
func (a Account) OneServer() bool { return a.Server == aMySQL || a.Server == aMariaDB }

// Grantee writes the account as GRANT wants it.
func (a Account) Grantee() string { return "'" + a.User + "'@'" + a.Host + "'" }

// Account asks the server.
func (i Inspector) Account(ctx context.Context) (Account, error) {
	v, err := recognize(ctx, i.s.db)
	if err != nil {
		return Account{}, classify("read which server it is", err)
	}
	rows, err := readTexts(ctx, i.s.db, "SELECT CURRENT_USER() AS who, DATABASE() AS name")
	if err != nil || len(rows) == 0 {
		return Account{}, classify("read the name of the account", err)
	}
	who := rows[0]["who"]
	host := who[strings.LastIndexByte(who, '@')+1:]
	user := strings.TrimSuffix(who, "@"+host)
	return Account{user, host, rows[0]["name"], v.name}, nil
}

// Transaction is an open transaction of any connection to the server.
type Transaction struct {
	Thread string
	Age    time.Duration
	Locked string // number of rows
	Query  string // what runs in it now, "" for nothing
}

// OldestTransaction returns the server's transaction that is open for longest, or the zero Transaction. It needs the
// privilege PROCESS. InnoDB notes its start in the time zone of the server.
func (i Inspector) OldestTransaction(ctx context.Context) (found Transaction, err error) {
	const query = "SELECT trx_mysql_thread_id AS thread, trx_rows_locked AS locked, LEFT(trx_query, 80) AS query," +
		" TIMESTAMPDIFF(SECOND, trx_started, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM')) AS age" +
		" FROM information_schema.INNODB_TRX ORDER BY trx_started LIMIT 1"
	rows, err := i.readTransactions(ctx, query)
	if err != nil || len(rows) == 0 {
		return Transaction{}, classify("read the open transactions", err)
	}
	r := rows[0]
	return Transaction{
		Thread: r["thread"], Age: time.Duration(decimal(r["age"])) * time.Second,
		Locked: r["locked"], Query: r["query"],
	}, nil
}

const (
	// The pauses between reads of INNODB_TRX grow from the first to the last by half, and by chance to twice as long.
	// InnoDB looks anew when no caller has asked for 0.1 s: readers in step would keep its last look for each other.
	firstTransactionPause = 120 * time.Millisecond
	lastTransactionPause  = 1400 * time.Millisecond
	// cannotConvert is MySQL's ER_CANNOT_CONVERT_STRING.
	cannotConvert = 3854
)

// readTransactions asks INNODB_TRX. MySQL answers with an error while a statement of any transaction holds characters
// of four bytes, whatever columns are asked for.
func (i Inspector) readTransactions(ctx context.Context, query string) (rows []map[string]string, err error) {
	for pause := firstTransactionPause; ; pause += pause / 2 {
		rows, err = readTexts(ctx, i.s.db, query)
		if refused := new(mysql.MySQLError); !errors.As(err, &refused) || refused.Number != cannotConvert {
			return rows, err
		}
		err = fmt.Errorf("a running statement holds characters of four bytes, so ask again later: %w", err)
		if pause > lastTransactionPause {
			return nil, err
		}
		select {
		case <-time.After(pause + rand.N(pause)):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// Locker is an open transaction that has locked rows.
type Locker struct {
	Thread string
	Age    time.Duration
	Rows   int64
	Tasks  bool // rows of tasks are among them; false where the server does not tell
}

const (
	// mostLockers is how many transactions [Inspector.Lockers] returns.
	mostLockers = 5
	// mostAsked is how many it asks about, because some lock rows of other tables.
	mostAsked = 50
)

// Lockers returns the transactions of the server that have locked rows and are open for longer than that, the oldest
// first. It needs the privilege PROCESS. With SELECT on performance_schema.data_locks, MySQL tells which have locked
// tasks, and the others are left out. MariaDB does not tell.
func (i Inspector) Lockers(ctx context.Context, than time.Duration) (found []Locker, err error) {
	query := fmt.Sprintf("SELECT trx_id AS trx, trx_mysql_thread_id AS thread, trx_rows_locked AS locked,"+
		" TIMESTAMPDIFF(SECOND, trx_started, CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM')) AS age"+
		" FROM information_schema.INNODB_TRX WHERE trx_rows_locked > 0 AND trx_started <="+
		" CONVERT_TZ(UTC_TIMESTAMP(), '+00:00', 'SYSTEM') - INTERVAL %d SECOND ORDER BY trx_started LIMIT %d",
		int(than.Seconds()), mostAsked)
	rows, err := i.readTransactions(ctx, query)
	if err != nil || len(rows) == 0 {
		return nil, classify("read the transactions that lock rows", err)
	}
	ofTasks, told := i.lockTasks(ctx, rows)
	for _, r := range rows {
		if !told || ofTasks[r["trx"]] {
			found = append(found, Locker{
				Thread: r["thread"], Age: time.Duration(decimal(r["age"])) * time.Second, Rows: decimal(r["locked"]),
				Tasks: told,
			})
		}
	}
	return found[:min(len(found), mostLockers)], nil
}

// lockTasks returns which of the transactions have locked tasks. It is not told where the server or its privileges do
// not allow to ask. Without its performance schema the server keeps no locks in that table. The table of locks has an
// index by transaction, and one row of each is read.
func (i Inspector) lockTasks(ctx context.Context, transactions []map[string]string) (of map[string]bool, told bool) {
	branches := make([]string, len(transactions))
	for n, t := range transactions {
		branches[n] = fmt.Sprintf("(SELECT ENGINE_TRANSACTION_ID AS trx FROM performance_schema.data_locks"+
			" WHERE ENGINE_TRANSACTION_ID = %d AND OBJECT_SCHEMA = DATABASE() AND OBJECT_NAME = '"+table+"' LIMIT 1)",
			decimal(t["trx"]))
	}
	kept, err := i.Show(ctx, GlobalVariables, "performance_schema")
	if err != nil || kept["performance_schema"] != "ON" {
		return nil, false
	}
	rows, err := readTexts(ctx, i.s.db, strings.Join(branches, " UNION ALL "))
	of = map[string]bool{}
	for _, r := range rows {
		of[r["trx"]] = true
	}
	return of, err == nil
}

// HasRowLocks reports whether another transaction can hold a lock on a single row.
func (i Inspector) HasRowLocks() bool { return i.s.dialect.rowLocks }

// HistoryLength returns how many old versions InnoDB keeps for transactions that may still read them. MariaDB tells
// everyone, MySQL those with the privilege PROCESS.
func (i Inspector) HistoryLength(ctx context.Context) (int64, error) {
	const name = "innodb_history_list_length"
	values, err := i.Show(ctx, GlobalStatus, name)
	if length, told := values[name]; told || err != nil {
		return decimal(length), err
	}
	const query = "SELECT count AS n FROM information_schema.INNODB_METRICS WHERE name = 'trx_rseg_history_len'"
	rows, err := readTexts(ctx, i.s.db, query)
	if err != nil || len(rows) == 0 {
		return 0, classify("read the length of the history", err)
	}
	return decimal(rows[0]["n"]), nil
}

// LastErrors returns the beginnings of the last errors of tasks of the tag, of those that ended or are due within an
// hour before or after now, at most limit of each status: failed ones, and pending ones that are tried again.
func (i Inspector) LastErrors(ctx context.Context, tag string, limit int) (texts []string, err error) {
	const span = time.Hour
	d := i.s.dialect
	const beginning = 300 // characters
	for _, status := range []row.Status{row.Pending, row.Failed} {
		query := "SELECT " + fmt.Sprintf(d.readText, fmt.Sprintf("SUBSTR(error_stack, 1, %d)", beginning)) +
			" AS text FROM " + table + d.byDue + " WHERE status = ? AND tag = ?" + d.exactTag +
			" AND due_time >= " + d.inMillis("?") + " AND due_time < " + d.inMillis("?") +
			" ORDER BY due_time DESC LIMIT " + fmt.Sprint(limit)
		rows, err := readTexts(ctx, i.s.db, query, int64(status), tag, -span.Milliseconds(), span.Milliseconds())
		if err != nil {
			return nil, classify("read the errors of a tag", err)
		}
		for _, r := range rows {
			if r["text"] != "" {
				texts = append(texts, r["text"])
			}
		}
	}
	return texts, nil
}

// SilentReceivers returns receivers that have expired and are not purged, the latest first.
func (i Inspector) SilentReceivers(ctx context.Context, limit int) (silent []row.Receiver, err error) {
	d := i.s.dialect
	query := clause{sql: "SELECT " + receivers.list(d, "t.") + " FROM " + workerTable +
		" AS t WHERE t.expire_time <= " + d.now + " ORDER BY t.expire_time DESC, t.id LIMIT " + fmt.Sprint(limit)}
	silent, _, err = readAll(ctx, i.s.db, query, receivers)
	return silent, classify("read receivers", err)
}

// Unusable is an index of the schema that statements cannot use.
type Unusable struct {
	Index
	Is   string // what is wrong
	Mend string // the statement that mends it
}

// UnusableIndexes returns the indexes of the schema that are not there, are others by the same name, or are hidden from
// statements. It leaves out the indexes of missing tables.
func (i Inspector) UnusableIndexes(ctx context.Context) (unusable []Unusable, err error) {
	rows, err := readTexts(ctx, i.s.db, i.s.dialect.indexColumns)
	if err != nil {
		return nil, classify("read the indexes", err)
	}
	found, tables := map[string][]map[string]string{}, map[string]bool{}
	for _, r := range rows {
		found[r["index_name"]], tables[r["table_name"]] = append(found[r["index_name"]], r), true
	}
	for _, x := range i.s.dialect.indexes {
		if !tables[x.Table] {
			continue
		}
		unique := ""
		if x.Unique {
			unique = "UNIQUE "
		}
		add := func(is, mend string) {
			mend = fmt.Sprintf(mend, x.Table, x.Name, unique, x.Columns+x.order)
			unusable = append(unusable, Unusable{x, is, mend})
		}
		switch columns := found[x.Name]; {
		case len(columns) == 0:
			add("is missing", "CREATE %[3]sINDEX %[2]s ON %[1]s (%[4]s)")
		case x.isOther(columns):
			add("is another one by this name", i.s.dialect.replaceIndex)
		case columns[0]["is_visible"] == "NO":
			add("is invisible", "ALTER TABLE %[1]s ALTER INDEX %[2]s VISIBLE")
		case columns[0]["ignored"] == "YES":
			add("is ignored", "ALTER TABLE %[1]s ALTER INDEX %[2]s NOT IGNORED")
		}
	}
	return unusable, nil
}

// isOther reports whether the index that was found has other columns, or lets values repeat.
func (x Index) isOther(columns []map[string]string) bool {
	var names []string
	for _, c := range columns {
		names = append(names, c["column_name"])
	}
	return strings.Join(names, ", ") != x.Columns || x.Unique && columns[0]["non_unique"] == "1"
}

// addressDials is how many connections are asked who answers at an address.
const addressDials = 4

// Databases returns a server of each database that answers at the address, sorted. It holds some connections at once,
// so that the pool opens new ones.
func (i Inspector) Databases(ctx context.Context) ([]string, error) {
	const op = "find out who answers at the address of the database"
	servers := map[string]string{}
	for range addressDials {
		conn, err := i.s.db.Conn(ctx)
		if err != nil {
			return nil, classify(op, err)
		}
		defer conn.Close()
		id, err := identify(ctx, conn)
		if err != nil {
			return nil, classify(op, err)
		}
		if id.writable {
			servers[id.database] = id.server
		}
	}
	return slices.Sorted(maps.Values(servers)), nil
}

// ReadOnly reports whether the server takes no writes.
func (i Inspector) ReadOnly(ctx context.Context) (bool, error) {
	variables, err := i.Show(ctx, GlobalVariables, readOnlyVariables...)
	return err == nil && isReadOnly(variables), err
}
