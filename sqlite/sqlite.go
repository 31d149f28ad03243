// Package sqlite lets delaytask keep its tasks in a SQLite file. Import it for its effect, like a driver of
// database/sql:
//
//	import _ "github.com/delaytask/delaytask/sqlite"
//
// It links modernc.org/sqlite, a translation of SQLite into Go that needs no C compiler.
package sqlite

import (
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/store/sqlstore/sqlitedriver"
)

func init() { sqlstore.RegisterSQLite(sqlitedriver.NewConnector) }
