package doctor

import (
	"database/sql"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
)

// Subject is what is examined: a database, and the settings of the processes that use it.
type Subject struct {
	Store *sqlstore.Store
	DB    *sql.DB // the pool of the store
	Kind  sqlstore.Kind

	BodyLimit int
	Retention map[row.Status]time.Duration // of final statuses; 0: for ever
	Receivers []string                     // tags whose tasks are posted to addresses of the settings

	Progress func(done, total int) // is called after each check, also from several goroutines; may be nil

	inspect sqlstore.Inspector
	account sqlstore.Account // zero on SQLite
	looked  func()           // is called after each check

	oneServer bool // what a connection sees of settings, transactions and plans holds for all statements
	readOnly  bool // the server takes no writes
}

// set is the statement that sets a variable of the server.
func (s *Subject) set(name, value string) string {
	if s.account.Server == "MySQL" {
		return "SET PERSIST " + name + " = " + value
	}
	return "SET GLOBAL " + name + " = " + value + " /* and in the option file of the server */"
}
