package doctor

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// settings are what a server says of itself, by names in lower case. A name that it does not know is missing.
type settings struct {
	session, global, status map[string]string
	nodes                   int    // live processes
	source                  string // the server that this one replicates, "" for none or where it is not known
}

// checkSettings judges what the checks at start leave out: those see the sessions of delaytask, which set much.
func checkSettings(ctx context.Context, s *Subject) ([]Finding, error) {
	var told settings
	var err error
	if told.session, err = s.inspect.Show(ctx, sqlstore.SessionVariables, "transaction_isolation",
		"tx_isolation", "innodb_snapshot_isolation", "wsrep_on", "wsrep_sync_wait",
		"group_replication_group_name", "group_replication_consistency",
		"max_statement_time", "max_execution_time", "read_only"); err != nil {
		return nil, err
	}
	if told.global, err = s.inspect.Show(ctx, sqlstore.GlobalVariables, "sql_mode", "innodb_doublewrite",
		"wait_timeout", "max_connections", "max_user_connections"); err != nil {
		return nil, err
	}
	if told.status, err = s.inspect.Show(ctx, sqlstore.GlobalStatus, "max_used_connections",
		"connection_errors_max_connections", "wsrep_cluster_status", "wsrep_ready", "wsrep_flow_control_paused",
	); err != nil {
		return nil, err
	}
	if told.source, _, err = s.inspect.ReplicaOf(ctx, isAlive); err != nil && !isUntold(err) {
		return nil, err
	}
	if nodes, reading, err := s.Store.Nodes(ctx); err == nil { // the table may be missing
		for _, n := range nodes {
			if isAlive(n, reading.Time) {
				told.nodes++
			}
		}
	}
	return s.judge(told), nil
}

// behind says what is not judged of servers that a connection does not see.
func behind(product string) Finding {
	return Finding{"behind", Info, "the servers behind " + cmp.Or(product, "this product") + " are not looked at",
		"their settings, open transactions and plans are not judged here; a connection sees one of them at a time",
		"look at each server by itself"}
}

// isUntold reports whether the account may not ask, or the server does not know the question.
func isUntold(err error) bool {
	return sqlstore.IsDenied(err) || row.IsOneOf(err, row.ClassOperator)
}

// shortestIdle is how long an idle connection stays in a pool.
const shortestIdle = 60 // seconds

func (s *Subject) judge(told settings) (found []Finding) {
	add := func(code string, severity Severity, title, meaning, fix string) {
		found = append(found, Finding{code, severity, title, meaning, fix})
	}
	// MariaDB has the second name, and both from 11.1 on.
	isolation := cmp.Or(told.session["transaction_isolation"], told.session["tx_isolation"])
	level := "transaction_isolation"
	if s.account.Server == "MariaDB" {
		level = "tx_isolation"
	}
	switch isolation {
	case "SERIALIZABLE":
		add("isolation", Warning, "connections begin with the isolation level SERIALIZABLE",
			"every read in a transaction locks what it reads, and group replication refuses its writes",
			s.set(level, "'READ-COMMITTED'"))
	case "READ-UNCOMMITTED":
		add("isolation", Warning, "connections begin with the isolation level READ-UNCOMMITTED",
			"reads find tasks that are rolled back later, and claims for them are lost",
			s.set(level, "'READ-COMMITTED'"))
	case "REPEATABLE-READ":
		if on(told.session["innodb_snapshot_isolation"]) {
			add("snapshot_isolation", Info, "innodb_snapshot_isolation is on",
				"your own transaction that saves or completes tasks can end with error 1020; run it again then",
				"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, in such transactions")
		}
	}
	if mode, known := told.global["sql_mode"]; known && !strings.Contains(mode, "STRICT_") {
		add("sql_mode", Warning, "sql_mode of the server is not strict",
			"in your own transactions the server may cut values instead of refusing them",
			s.set("sql_mode", "CONCAT(@@GLOBAL.sql_mode, ',STRICT_TRANS_TABLES')"))
	}
	if v, known := told.global["innodb_doublewrite"]; known && !on(v) {
		add("doublewrite", Warning, "innodb_doublewrite is off",
			"a crash in the middle of a write can damage a page, unless the file system writes pages whole",
			"innodb_doublewrite = ON, in the server's option file")
	}
	if idle, known := number(told.global["wait_timeout"]); known && idle < shortestIdle {
		add("wait_timeout", Warning, fmt.Sprintf("wait_timeout is %d s", idle),
			fmt.Sprintf("the server closes connections that a pool keeps for %d s; statements meet closed ones",
				shortestIdle),
			s.set("wait_timeout", "600"))
	}
	if told.source != "" && !on(told.session["read_only"]) { // a start on a read-only server is refused
		add("replica", Critical, "the server applies the changes of "+told.source+", and can be written to",
			"processes on it run the tasks of that server a second time, and their writes break the replication",
			s.set("read_only", "1")+"; or point the DSN at "+told.source)
	}
	s.judgeStatementTime(told, add)
	s.judgeConnections(told, add)
	s.judgeCluster(told, add)
	return found
}

// patientStatement is how long a process waits for a statement at most.
const patientStatement = 10 * time.Second

// judgeStatementTime judges the time after which the server ends a statement. MariaDB counts seconds and ends writes as
// well, MySQL counts milliseconds and ends reads.
func (s *Subject) judgeStatementTime(told settings, add adder) {
	for name, unit := range map[string]time.Duration{
		"max_statement_time": time.Second, "max_execution_time": time.Millisecond,
	} {
		value, err := strconv.ParseFloat(told.session[name], 64)
		if err != nil || value <= 0 {
			continue
		}
		severity, most := Info, time.Duration(value*float64(unit))
		meaning := "the server ends migrations, and long reads of lists, counts and exports"
		if most < patientStatement {
			severity = Warning
			meaning = fmt.Sprintf("the server ends statements that a process would wait %v for: with a backlog or "+
				"behind a lock claims, purges and lists fail, and saves are of unknown outcome", patientStatement)
			if unit == time.Millisecond {
				meaning = fmt.Sprintf("the server ends reads that a process would wait %v for: with a backlog tasks "+
					"are found late, and lists fail", patientStatement)
			}
		}
		add("statement_time", severity, fmt.Sprintf("%s is %v", name, most), meaning,
			s.set(name, "0")+" /* or add "+name+"=0 to the DSN */")
	}
}

type adder func(code string, severity Severity, title, meaning, fix string)

func (s *Subject) judgeConnections(told settings, add adder) {
	server, known := number(told.global["max_connections"])
	if !known {
		return
	}
	most, limit := server, "max_connections"
	if user, limited := number(told.global["max_user_connections"]); limited && user > 0 && user < server {
		most, limit = user, "max_user_connections"
	}
	need := sqlstore.ConnectionsFor(told.nodes)
	used, _ := number(told.status["max_used_connections"])
	refused, _ := number(told.status["connection_errors_max_connections"])
	switch {
	case need > most:
		add("connections", Warning,
			fmt.Sprintf("%s is %d, and %d processes live", limit, most, told.nodes),
			fmt.Sprintf("each takes a few at least: below %d connections are refused when all are busy, and saves and "+
				"claims wait", need),
			s.set(limit, strconv.Itoa(2*need)))
	case refused > 0 || used >= server:
		add("connections", Warning,
			fmt.Sprintf("all %d connections of the server have been in use since its start", server),
			"connections were refused, and saves and claims waited", s.set("max_connections", strconv.Itoa(2*server)))
	}
}

func (s *Subject) judgeCluster(told settings, add adder) {
	if on(told.session["wsrep_on"]) {
		state, known := told.status["wsrep_cluster_status"]
		if known && state != "Primary" || told.status["wsrep_ready"] == "OFF" {
			add("cluster", Critical, "this member of Galera is not part of the cluster: "+state,
				"it refuses every statement until it has joined a majority again",
				"SHOW GLOBAL STATUS LIKE 'wsrep_%'")
		}
		if paused, _ := strconv.ParseFloat(told.status["wsrep_flow_control_paused"], 64); paused > 0.1 {
			add("flow_control", Warning, fmt.Sprintf("Galera was paused for %.0f %% of the time", 100*paused),
				"a slow member holds up the commits of all", "SHOW GLOBAL STATUS LIKE 'wsrep_flow_control%'")
		}
		if told.session["wsrep_sync_wait"] == "0" {
			add("read_your_writes", Info, "wsrep_sync_wait is 0",
				"where an address spreads connections over members, a process does not see at once what it has written",
				"give each process one member, or add wsrep_sync_wait=7 to the DSN")
		}
	}
	inGroup := told.session["group_replication_group_name"] != ""
	if inGroup && told.session["group_replication_consistency"] == "EVENTUAL" {
		add("read_your_writes", Info, "group_replication_consistency is EVENTUAL",
			"where an address spreads connections over members, a process does not see at once what it has written",
			"give each process one member, or add group_replication_consistency=%27BEFORE%27 to the DSN")
	}
}

func on(value string) bool {
	return value != "" && value != "0" && !strings.EqualFold(value, "OFF")
}

func number(value string) (int, bool) {
	n, err := strconv.Atoi(value)
	return n, err == nil
}

const (
	longHistory     = 1_000_000        // old versions
	longTransaction = 10 * time.Minute // a backup takes longer, and is a finding as well
)

// checkHistory looks at what InnoDB has to keep for old transactions.
func checkHistory(ctx context.Context, s *Subject) ([]Finding, error) {
	length, err := s.inspect.HistoryLength(ctx)
	if err != nil || length < longHistory {
		return nil, err
	}
	return []Finding{{"history", Warning, fmt.Sprintf("InnoDB keeps %d old versions of rows", length),
		"reads by index step over versions of tasks that are long done, and claims become slow; an old open " +
			"transaction keeps them, or the purge of the server is too slow",
		"SELECT * FROM information_schema.INNODB_TRX ORDER BY trx_started LIMIT 20"}}, nil
}

// checkTransactions looks for a transaction that is open for long.
func checkTransactions(ctx context.Context, s *Subject) ([]Finding, error) {
	oldest, err := s.inspect.OldestTransaction(ctx)
	if err != nil || oldest.Age < longTransaction {
		return nil, err
	}
	return []Finding{{"transaction", Warning,
		fmt.Sprintf("connection %s has a transaction open for %v, with %s rows locked", oldest.Thread, oldest.Age,
			oldest.Locked),
		"InnoDB keeps the old versions of all rows for it, and tasks that it locks do not start",
		"KILL " + oldest.Thread}}, nil
}
