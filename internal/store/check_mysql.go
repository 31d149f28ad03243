package store

import (
	"context"
	"fmt"
	"strings"
)

func (s *Store) checkPool(context.Context) ([]Warning, error) {
	if most := s.db.Stats().MaxOpenConnections; most > 0 && most < smallestPool {
		return nil, refuse(fmt.Sprintf("call SetMaxOpenConns with at least %d", smallestPool),
			"the pool has %d connections, and %d are needed beside what the application uses", most, smallestPool)
	}
	return nil, nil
}

func (s *Store) checkServer(ctx context.Context) ([]Warning, error) {
	var name, mode string
	var autocommit bool
	err := s.db.QueryRowContext(ctx, "SELECT VERSION(), @@autocommit, @@sql_mode").Scan(&name, &autocommit, &mode)
	if err != nil {
		return nil, err
	}
	if v := parseVersion(name); !v.supported() {
		return nil, refuse("use MySQL 8.0 or MariaDB 10.6, or later", "%s is too old", v)
	}
	if !autocommit {
		return nil, refuse("remove autocommit=0 from the DSN or the server's settings",
			"connections of the pool start with autocommit = 0, so nothing that they write would be committed")
	}
	var warnings []Warning
	if !strings.Contains(mode, "STRICT_TRANS_TABLES") && !strings.Contains(mode, "STRICT_ALL_TABLES") {
		warnings = append(warnings, "sql_mode is not strict: in your own transactions the server may cut values instead of "+
			"refusing them; add STRICT_TRANS_TABLES to sql_mode")
	}
	more, err := s.checkVariables(ctx)
	return append(warnings, more...), err
}

// checkVariables judges what the server says of itself. What it does not know, as TiDB much of this, is not judged.
func (s *Store) checkVariables(ctx context.Context) ([]Warning, error) {
	variables := make(map[string]string)
	const query = "SHOW GLOBAL VARIABLES WHERE Variable_name IN" +
		" ('read_only', 'innodb_read_only', 'log_bin', 'sync_binlog', 'innodb_flush_log_at_trx_commit', 'innodb_doublewrite')"
	err := scan(ctx, s.db, query, nil, func(v *struct {
		Name  string `db:"Variable_name"`
		Value string `db:"Value"`
	}) error {
		variables[strings.ToLower(v.Name)] = v.Value
		return nil
	})
	if err != nil {
		return nil, err
	}
	is := func(name, value string) bool { return strings.EqualFold(variables[name], value) }
	if is("read_only", "ON") || is("innodb_read_only", "ON") {
		return nil, refuse("connect to the primary, or make this server writable", "the server is read-only")
	}
	var warnings []Warning
	if v, known := variables["innodb_flush_log_at_trx_commit"]; known && v != "1" {
		warnings = append(warnings, Warning("innodb_flush_log_at_trx_commit is "+v+
			": accepted tasks can be lost when the server's machine crashes; set it to 1"))
	}
	if is("log_bin", "ON") && !is("sync_binlog", "1") {
		warnings = append(warnings, Warning("sync_binlog is "+variables["sync_binlog"]+
			": accepted tasks can be lost when the server's machine crashes; set it to 1"))
	}
	return warnings, nil
}

func (s *Store) checkEngine(ctx context.Context) ([]Warning, error) {
	const query = "SELECT table_name AS name, engine AS engine FROM information_schema.tables" +
		" WHERE table_schema = DATABASE() AND table_name IN ('" + table + "', '" + nodeTable + "', '" + tagTable + "')"
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
