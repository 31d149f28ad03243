package sqlstore_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/storetest"
)

// No setting of a caller's pool changes what is stored, outside or inside of the caller's transaction.
func TestSettingsOfTheCallersPoolChangeNothing(t *testing.T) {
	settings := []string{
		"",
		"parseTime=true&loc=America%2FNew_York",
		"parseTime=true&loc=America%2FNew_York&interpolateParams=true&time_zone=%27-05:00%27",
		"clientFoundRows=true",
		"clientFoundRows=true&interpolateParams=true",
		"charset=latin1",
		"charset=latin1&interpolateParams=true",
		"sql_mode=%27ANSI_QUOTES,NO_BACKSLASH_ESCAPES%27&interpolateParams=true",
		"sql_mode=%27%27",
		"columnsWithAlias=true&collation=utf8mb4_general_ci&transaction_isolation=%27SERIALIZABLE%27",
	}
	lender.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		_, own := open(t, d)
		plain, _, _ := strings.Cut(d.DSN, "?")
		for _, params := range settings {
			if d.Kind == dbtest.Group { // which refuses that level
				params = strings.ReplaceAll(params, "SERIALIZABLE", "READ-COMMITTED")
			}
			if d.Kind == dbtest.MariaDB || d.Kind == dbtest.Galera {
				params = strings.ReplaceAll(params, "transaction_isolation", "tx_isolation")
			}
			t.Run(params, func(t *testing.T) {
				callers := poolOf(t, plain+"?"+params)
				storetest.RunColumns(t, func(t *testing.T) (store.Store, func() storetest.Tx) {
					exec(t, own.DB, "DELETE FROM delay_task_message")
					s := sqlstore.New(callers, sqlstore.MySQL)
					t.Cleanup(func() { _ = s.Close(context.Background()) })
					reading, err := s.Now(t.Context())
					if skew := time.Since(reading.Time.Std()).Abs(); err != nil || skew > 10*time.Second {
						t.Errorf("the clock reads %+v, %v from the machine's: %v", reading, skew, err)
					}
					return s, func() storetest.Tx { return begin(t, callers) }
				})
			})
		}
	})
}
