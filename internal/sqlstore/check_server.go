package sqlstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
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
