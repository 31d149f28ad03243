// Package sqlcheck parses every statement that delaytask sends to a MySQL server with the parser of TiDB, and holds it
// against a list of what TiDB and Vitess refuse although they can read it. No server is asked: "parsed, not run".
package sqlcheck

import (
	"slices"
	"strings"

	"github.com/pingcap/tidb/pkg/parser/ast"
)

// refusal is something that can be read and is refused, or is not done, by a server that speaks like MySQL.
type refusal struct {
	what    string
	by      string // which servers
	source  string // where that is written
	example string // a statement that holds it
	is      func(ast.Node) bool

	accepted string // why a statement of ours may hold it all the same; "" where none may
}

const (
	tidbDocs   = "https://docs.pingcap.com/tidb/stable/mysql-compatibility"
	vitessDocs = "https://vitess.io/docs/archive/21.0/reference/compatibility/mysql-compatibility/"
)

var refusals = []refusal{
	{
		what: "SKIP LOCKED", by: "TiDB, which takes no lock then",
		source:  "https://github.com/pingcap/tidb/issues/18207",
		example: "SELECT 1 FROM t FOR UPDATE SKIP LOCKED",
		is: func(n ast.Node) bool {
			s, ok := n.(*ast.SelectStmt)
			return ok && s.LockInfo != nil && slices.Contains(
				[]ast.SelectLockType{ast.SelectLockForUpdateSkipLocked, ast.SelectLockForShareSkipLocked},
				s.LockInfo.LockType)
		},
		accepted: "only a server whose name is not TiDB is sent it, and a lock that is missed costs a wait of a second",
	},
	{
		what: "GET_LOCK", by: "TiDB before 6.1; Vitess keeps a lock for one connection to one of its servers",
		source:  tidbDocs,
		example: "SELECT GET_LOCK('a', 1)",
		is:      calls("get_lock"), accepted: "a refusal is taken for no lock, and migrations may run twice",
	},
	{
		what: "RELEASE_LOCK", by: "TiDB before 6.1", source: tidbDocs, example: "DO RELEASE_LOCK('a')",
		is: calls("release_lock"), accepted: "sent only after GET_LOCK was answered",
	},
	{
		what: "a trigger, a procedure or an event", by: "TiDB", source: tidbDocs,
		example: "DROP PROCEDURE p",
		is:      func(n ast.Node) bool { return isA[*ast.DropProcedureStmt](n) || isA[*ast.ProcedureInfo](n) },
	},
	{
		what: "CREATE TABLE … SELECT", by: "TiDB", source: tidbDocs, example: "CREATE TABLE t SELECT 1",
		is: func(n ast.Node) bool {
			s, ok := n.(*ast.CreateTableStmt)
			return ok && s.Select != nil
		},
	},
	{
		what: "a temporary table", by: "Vitess, beyond one server", source: vitessDocs,
		example: "CREATE TEMPORARY TABLE t (a INT)",
		is: func(n ast.Node) bool {
			s, ok := n.(*ast.CreateTableStmt)
			return ok && s.TemporaryKeyword != ast.TemporaryNone
		},
	},
	{
		what: "LOCK TABLES", by: "TiDB, which ignores it; Vitess", source: tidbDocs, example: "LOCK TABLES t WRITE",
		is: isA[*ast.LockTablesStmt],
	},
	{
		what: "a user variable that is assigned", by: "Vitess, and MySQL deprecates it", source: vitessDocs,
		example: "SELECT @a := 1",
		is: func(n ast.Node) bool {
			v, ok := n.(*ast.VariableExpr)
			return ok && !v.IsSystem && v.Value != nil
		},
	},
	{
		what: "LOAD DATA", by: "Vitess", source: vitessDocs, example: "LOAD DATA LOCAL INFILE 'f' INTO TABLE t",
		is: isA[*ast.LoadDataStmt],
	},
	{
		what: "a foreign key", by: "Vitess in sharded keyspaces", source: vitessDocs,
		example: "CREATE TABLE t (a INT, FOREIGN KEY (a) REFERENCES s (a))",
		is:      constraint(ast.ConstraintForeignKey),
	},
	{
		what: "a FULLTEXT index", by: "TiDB", source: tidbDocs, example: "CREATE TABLE t (a TEXT, FULLTEXT KEY (a))",
		is: constraint(ast.ConstraintFulltext),
	},
	{
		what: "a savepoint", by: "TiDB before 6.2", source: tidbDocs, example: "SAVEPOINT a",
		is:       isA[*ast.SavepointStmt],
		accepted: "it asks for a caller's transaction where the type does not tell; a refusal refuses the save",
	},
}

func isA[N ast.Node](n ast.Node) bool {
	_, ok := n.(N)
	return ok
}

func constraint(kind ast.ConstraintType) func(ast.Node) bool {
	return func(n ast.Node) bool {
		c, ok := n.(*ast.Constraint)
		return ok && c.Tp == kind
	}
}

func calls(function string) func(ast.Node) bool {
	return func(n ast.Node) bool {
		f, ok := n.(*ast.FuncCallExpr)
		return ok && strings.EqualFold(f.FnName.O, function)
	}
}

// unreadable are statements that TiDB's parser does not read, by what it stumbles over. Each must still be sent, and
// still not be read.
var unreadable = []struct{ text, why, source string }{
	{
		text: "DEFAULT (UTC_TIMESTAMP(6)",
		why: "TiDB takes few functions as a default, and this is not one of them: there the tables are made by hand " +
			"without these defaults, and plain INSERTs give every column (docs/database.md)",
		source: "https://docs.pingcap.com/tidb/stable/data-type-default-values/",
	},
}
