package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/delaytask/delaytask/internal/ids"
)

// judged lists the variables that judgeServer reads.
var judged = []string{
	"version", "version_comment", "autocommit", "sql_mode", "read_only", "super_read_only", "innodb_read_only",
	"innodb_flush_log_at_trx_commit", "log_bin", "sync_binlog", "max_allowed_packet",
}

// readOnlyVariables say that a server takes no writes, from some accounts or from all.
var readOnlyVariables = []string{"read_only", "super_read_only", "innodb_read_only"}

func isReadOnly(variables map[string]string) bool {
	return slices.ContainsFunc(readOnlyVariables, func(name string) bool { return !isOff(variables[name]) })
}

// isOff also holds for a variable that the server does not know.
func isOff(value string) bool { return value == "" || value == "0" || strings.EqualFold(value, "OFF") }

// leastPacket leaves room around the largest batch of saves: 4 MiB of tasks, which grow when quoted.
const leastPacket = 16 << 20

// ErrReadOnly is why a process does not start on a server that takes no writes.
var ErrReadOnly = errors.New("the server is read-only")

func refuseReadOnly() error {
	return refuse("connect to the primary, or make this server writable", "%w", ErrReadOnly)
}

// CheckWritable returns an error like the one of [Store.Check] when the server takes no writes. The driver says of a
// write there only that its connection is bad.
func CheckWritable(ctx context.Context, db *sql.DB, kind Kind) error {
	if kind.Embedded() {
		return nil
	}
	variables, err := show(ctx, db, GlobalVariables, readOnlyVariables...)
	if err == nil && isReadOnly(variables) {
		err = refuseReadOnly()
	}
	return classify("read whether the server takes writes", err)
}

// besideBody is more than what the statement and a task's other columns take in a packet.
const besideBody = 64 << 10

func (s *Store) checkServer(bodyLimit int) check {
	return func(ctx context.Context) ([]Warning, error) {
		variables, err := Inspect(s).Show(ctx, SessionVariables, judged...) // as a connection of the pool sees them
		if err != nil {
			return nil, err
		}
		if variables["version"] == "" {
			return nil, refuse("remove sql_select_limit from the DSN of the pool or the server's settings",
				"the server does not tell its version: sql_select_limit cuts what statements return")
		}
		return judgeServer(variables, bodyLimit)
	}
}

// judgeServer judges the server by its variables. One that the server does not know is not judged: TiDB lacks many.
func judgeServer(variables map[string]string, bodyLimit int) ([]Warning, error) {
	off := func(name string) bool { return isOff(variables[name]) }
	if v := parseVersion(variables["version"], variables["version_comment"]); !v.supported() {
		return nil, refuse("use MySQL 8.0 or MariaDB 10.6, or later", "%s is too old", v)
	}
	if _, known := variables["autocommit"]; known && off("autocommit") {
		return nil, refuse("remove autocommit=0 from the DSN or the server's settings",
			"connections of the pool start with autocommit = 0, so nothing that they write would be committed")
	}
	if isReadOnly(variables) {
		return nil, refuseReadOnly()
	}
	packet, packetErr := strconv.ParseInt(variables["max_allowed_packet"], 10, 64)
	if need := int64(bodyLimit) + besideBody; packetErr == nil && packet < need {
		const hint = "run: SET GLOBAL max_allowed_packet = %d /* and in the option file of the server;" +
			" or lower BodyLimit by at least %d */"
		least := max(leastPacket, (need+1023)/1024*1024) // servers round down to a multiple of 1024
		return nil, refuse(fmt.Sprintf(hint, least, need-packet),
			"bodies of up to %d bytes are to be saved (BodyLimit), and max_allowed_packet of the server is %d",
			bodyLimit, packet)
	}

	var warnings []Warning
	warn := func(variable, is, means, mend string) {
		warnings = append(warnings, Warning{variable, is, means, mend})
	}
	mode, known := variables["sql_mode"]
	if known && !strings.Contains(mode, "STRICT_TRANS_TABLES") && !strings.Contains(mode, "STRICT_ALL_TABLES") {
		warn("sql_mode", "sql_mode is not strict",
			"in your own transactions the server may cut values instead of refusing them",
			"add STRICT_TRANS_TABLES to sql_mode")
	}
	unsafe := func(name, value string) {
		warn(name, name+" is "+value, "accepted tasks can be lost when the server's machine crashes", "set it to 1")
	}
	switch v := variables["innodb_flush_log_at_trx_commit"]; v {
	case "", "1", "3": // 3 exists in MariaDB, and syncs even more often
	default:
		unsafe("innodb_flush_log_at_trx_commit", v)
	}
	if v := variables["sync_binlog"]; v != "" && v != "1" && !off("log_bin") {
		unsafe("sync_binlog", v)
	}
	if packetErr == nil && packet < leastPacket {
		warn("max_allowed_packet", fmt.Sprint("max_allowed_packet is ", packet),
			"a batch of saves or a long body can be refused",
			fmt.Sprint("set max_allowed_packet to at least ", leastPacket))
	}
	return warnings, nil
}

// checkCounter warns when the next plain INSERT gets an id that no process can name. It says nothing of a database that
// does not show its counter.
func (s *Store) checkCounter(ctx context.Context) ([]Warning, error) {
	shown, _ := readTexts(ctx, s.db, s.dialect.counter)
	for _, c := range shown {
		if nextID(c) > ids.Last {
			return []Warning{{"counter", "each plain INSERT gets an id beyond the last one", "it is late or refused",
				"run: " + s.dialect.countOn}}, nil
		}
	}
	return nil, nil
}

// autoIncrement finds the option of a table. Options stand behind the columns and before the comment.
var autoIncrement = regexp.MustCompile(`\n\)[^']* AUTO_INCREMENT=(\d+)`)

// nextID returns the id of the next plain INSERT by what the database shows: the last id, or the statement that makes
// the table as it is. It returns 0 when it is not known.
func nextID(shown map[string]string) uint64 {
	if last := shown["last_id"]; last != "" {
		return uint64(max(decimal(last), 0)) + 1
	}
	option := autoIncrement.FindStringSubmatch(shown["create table"])
	if option == nil {
		return 0
	}
	next, _ := strconv.ParseUint(option[1], 10, 64) // out of range: the largest number
	return next
}

func (s *Store) checkPool(context.Context) ([]Warning, error) {
	if most := s.db.Stats().MaxOpenConnections; most > 0 && most < readers+fewest {
		return nil, refuse(fmt.Sprintf(moreConns, readers+fewest),
			"the pool has %d connections; saves alone need %d: %d for reads, and %d for writes",
			most, readers+fewest, readers, fewest)
	}
	return nil, nil
}

const moreConns = "call SetMaxOpenConns with at least %d and what the application uses itself"

// RoomToRun returns an error that says what to do when the pool is too small for processors.
func (s *Store) RoomToRun() error {
	least := needed(s.concurrency)
	most := s.db.Stats().MaxOpenConnections
	if !s.dialect.reserves || most == 0 || most >= least {
		return nil
	}
	return refuse(fmt.Sprintf(moreConns+", or set Config.Concurrency to %d or less", least, most-readers),
		"the pool has %d connections; processors with a concurrency of %d need %d: %d for reads,"+
			" and one for each task, counted as %d to %d", most, s.concurrency, least, readers, fewest, enough)
}
