package delaytask

import (
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"testing"

	"modernc.org/sqlite"

	"github.com/delaytask/delaytask/internal/dbtest"
	"github.com/delaytask/delaytask/internal/store"
)

// wrapped hides the driver, as tracing libraries do.
type wrapped struct{ driver.Connector }

func (wrapped) Driver() driver.Driver { return nil }

func TestKindOfAWrappedDriverIsAsked(t *testing.T) {
	t.Parallel()
	connector, err := sqlite.NewConnector(filepath.Join(t.TempDir(), "app.db"))
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(wrapped{connector})
	t.Cleanup(func() { _ = db.Close() })
	if kind, err := kindOf(t.Context(), db); kind != store.SQLite || err != nil {
		t.Errorf("got %v, %v", kind, err)
	}
	dbtest.MySQLs(t, func(t *testing.T, database dbtest.Database) {
		plain, err := sql.Open("mysql", database.DSN)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = plain.Close() })
		connector, err := plain.Driver().(driver.DriverContext).OpenConnector(database.DSN)
		if err != nil {
			t.Fatal(err)
		}
		db := sql.OpenDB(wrapped{connector})
		t.Cleanup(func() { _ = db.Close() })
		if kind, err := kindOf(t.Context(), db); kind != store.MySQL || err != nil {
			t.Errorf("got %v, %v", kind, err)
		}
	})
}
