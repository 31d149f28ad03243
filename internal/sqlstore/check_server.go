package sqlstore

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/delaytask/delaytask/internal/cluster"
)

// judged are the variables that judgeServer looks at.
var judged = []string{
	"version", "autocommit", "sql_mode", "read_only", "super_read_only", "innodb_read_only",
	"innodb_flush_log_at_trx_commit", "log_bin", "sync_binlog", "max_allowed_packet",
}

// leastPacket leaves room around the largest batch of saves: 4 MiB of tasks, which grow when they are quoted.
const leastPacket = 16 << 20

// besideBody is more than a task's other columns and the statement take in a packet.
const besideBody = 64 << 10

func (s *Store) checkServer(bodyLimit int) check {
	return func(ctx context.Context) ([]Warning, error) {
		variables, err := s.readVariables(ctx)
		if err != nil {
			return nil, err
		}
		return judgeServer(variables, bodyLimit)
	}
}

// readVariables returns the judged variables by their names, as a connection of the pool sees them.
func (s *Store) readVariables(ctx context.Context) (map[string]string, error) {
	variables := make(map[string]string)
	query := "SHOW SESSION VARIABLES WHERE Variable_name IN ('" + strings.Join(judged, "', '") + "')"
	err := scan(ctx, s.db, query, nil, func(v *struct {
		Name  string `db:"Variable_name"`
		Value string `db:"Value"`
	}) error {
		variables[strings.ToLower(v.Name)] = v.Value
		return nil
	})
	return variables, err
}

// judgeServer judges what the server says of itself. A variable that it does not know, as TiDB many, is not judged.
func judgeServer(variables map[string]string, bodyLimit int) ([]Warning, error) {
	off := func(name string) bool { // also for what is unknown
		v := variables[name]
		return v == "" || v == "0" || strings.EqualFold(v, "OFF")
	}
	if v := parseVersion(variables["version"]); !v.supported() {
		return nil, refuse("use MySQL 8.0 or MariaDB 10.6, or later", "%s is too old", v)
	}
	if _, known := variables["autocommit"]; known && off("autocommit") {
		return nil, refuse("remove autocommit=0 from the DSN or the server's settings",
			"connections of the pool start with autocommit = 0, so nothing that they write would be committed")
	}
	if !off("read_only") || !off("super_read_only") || !off("innodb_read_only") {
		return nil, refuse("connect to the primary, or make this server writable", "the server is read-only")
	}
	packet, packetErr := strconv.ParseInt(variables["max_allowed_packet"], 10, 64)
	if need := int64(bodyLimit) + besideBody; packetErr == nil && packet < need {
		return nil, refuse(
			fmt.Sprintf("set max_allowed_packet to at least %d, or lower BodyLimit by at least %d", need, need-packet),
			"bodies of up to %d bytes are to be saved (BodyLimit), and max_allowed_packet of the server is %d", bodyLimit, packet)
	}

	var warnings []Warning
	warn := func(format string, args ...any) { warnings = append(warnings, Warning(fmt.Sprintf(format, args...))) }
	mode, known := variables["sql_mode"]
	if known && !strings.Contains(mode, "STRICT_TRANS_TABLES") && !strings.Contains(mode, "STRICT_ALL_TABLES") {
		warn("sql_mode is not strict: in your own transactions the server may cut values instead of refusing them; " +
			"add STRICT_TRANS_TABLES to sql_mode")
	}
	const unsafe = "%s is %s: accepted tasks can be lost when the server's machine crashes; set it to 1"
	switch v := variables["innodb_flush_log_at_trx_commit"]; v {
	case "", "1", "3": // 3 is MariaDB's, and syncs even more often
	default:
		warn(unsafe, "innodb_flush_log_at_trx_commit", v)
	}
	if v := variables["sync_binlog"]; v != "" && v != "1" && !off("log_bin") {
		warn(unsafe, "sync_binlog", v)
	}
	if packetErr == nil && packet < leastPacket {
		warn("max_allowed_packet is %d: a batch of saves or a long body can be refused; "+
			"set max_allowed_packet to at least %d", packet, leastPacket)
	}
	return warnings, nil
}

// checkCounter warns when the next plain INSERT gets an id that no process can name. A database that does not tell its
// counter is not judged.
func (s *Store) checkCounter(ctx context.Context) ([]Warning, error) {
	var warnings []Warning
	_ = scan(ctx, s.db, s.dialect.counter, nil, func(c *counter) error {
		if c.next() > cluster.Last {
			warnings = append(warnings, Warning("each plain INSERT gets an id beyond the last one, and is late or refused; "+
				"run: "+s.dialect.countOn))
		}
		return nil
	})
	return warnings, nil
}

// counter is what a database tells of the ids of plain INSERTs.
type counter struct {
	Table   string `db:"Table"`
	Created string `db:"Create Table"` // the statement that makes the table as it is
	Last    *int64 `db:"last_id"`
}

// autoIncrement is an option of a table, which stand behind its columns and before its comment.
var autoIncrement = regexp.MustCompile(`\n\)[^']* AUTO_INCREMENT=(\d+)`)

// next returns the id of the next plain INSERT, 0 when it is not told.
func (c *counter) next() uint64 {
	if c.Last != nil {
		return uint64(max(*c.Last, 0)) + 1
	}
	told := autoIncrement.FindStringSubmatch(c.Created)
	if told == nil {
		return 0
	}
	next, _ := strconv.ParseUint(told[1], 10, 64) // the largest one when it is larger
	return next
}

func (s *Store) checkPool(context.Context) ([]Warning, error) {
	least := needed(s.concurrency)
	if most := s.db.Stats().MaxOpenConnections; most > 0 && most < least {
		const hint = "call SetMaxOpenConns with at least %d and what the application uses itself, or lower Concurrency"
		return nil, refuse(fmt.Sprintf(hint, least),
			"the pool has %d connections, and a concurrency of %d needs %d: %d, and one for each task, counted as %d to %d",
			most, s.concurrency, least, readers, fewest, len(turns))
	}
	return nil, nil
}

func (s *Store) checkEngine(tables []string) check {
	query := "SELECT table_name AS name, engine AS engine FROM information_schema.tables" +
		" WHERE table_schema = DATABASE() AND table_name IN (" + quoted(tables) + ")"
	return func(ctx context.Context) ([]Warning, error) {
		return nil, scan(ctx, s.db, query, nil, func(t *struct {
			Name   string `db:"name"`
			Engine string `db:"engine"`
		}) error {
			if !strings.EqualFold(t.Engine, "InnoDB") {
				return refuse("run: ALTER TABLE "+t.Name+" ENGINE=InnoDB",
					"table %s has the engine %s, which knows no transactions", t.Name, t.Engine)
			}
			return nil
		})
	}
}

// quoted lists names of our own, which hold nothing to escape.
func quoted(names []string) string { return "'" + strings.Join(names, "', '") + "'" }

// version is what a server says of itself.
type version struct {
	name         string // "MySQL", "MariaDB" or "TiDB"
	major, minor int
}

var versionNumbers = regexp.MustCompile(`(\d+)\.(\d+)`)

// parseVersion reads the result of VERSION(), like 9.7.4-2, 10.11.19-MariaDB-0+deb12u1, 5.5.5-10.6.2-MariaDB or
// 8.0.11-TiDB-v8.5.0.
func parseVersion(s string) version {
	v := version{name: "MySQL"}
	switch {
	case strings.Contains(s, "MariaDB"):
		v.name = "MariaDB"
		s = strings.TrimPrefix(s, "5.5.5-") // set in front for the sake of old replicas
	case strings.Contains(s, "TiDB"):
		v.name = "TiDB"
		_, s, _ = strings.Cut(s, "TiDB-")
	}
	if m := versionNumbers.FindStringSubmatch(s); m != nil {
		v.major, _ = strconv.Atoi(m[1]) // digits, by the expression
		v.minor, _ = strconv.Atoi(m[2])
	}
	return v
}

func (v version) String() string { return fmt.Sprintf("%s %d.%d", v.name, v.major, v.minor) }

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// supported needs expressions as defaults, and generated columns that can be unique.
func (v version) supported() bool {
	switch v.name {
	case "MariaDB":
		return v.atLeast(10, 6)
	case "TiDB":
		return true
	default:
		return v.atLeast(8, 0)
	}
}

// skipsLocked reports whether the server does what SKIP LOCKED says. TiDB parses it and then takes no lock.
func (v version) skipsLocked() bool { return v.name != "TiDB" && v.supported() }
