//go:build !race

package counts

import (
	"context"
	"fmt"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
)

// counted is what is counted of each work.
var counted = [...]string{"statements", "rows and entries read", "bytes to the server", "bytes from it",
	"bytes of redo", "allocations of the client"}

type counts [len(counted)]float64

// counter asks a server for what it has counted. The server is the test's own, because none counts redo by connection.
type counter struct {
	*sqlx.Conn
	version, lsn string
	nothing      counts            // what counting costs
	fewest       map[string]counts // for one unit of a work
}

func newCounter(t *testing.T, db *sqlx.DB, kind dbtest.Kind) *counter {
	t.Helper()
	ctx := t.Context()
	c := &counter{fewest: map[string]counts{}, lsn: "SELECT variable_value FROM information_schema.global_status" +
		" WHERE variable_name = 'Innodb_lsn_current'"}
	if kind == dbtest.MySQL { // its status may be old
		c.lsn = "SELECT JSON_EXTRACT(storage_engines, '$.InnoDB.LSN') FROM performance_schema.log_status"
	}
	var err error
	c.Conn, err = db.Connx(ctx)
	servertest.OK(t, err)
	t.Cleanup(func() { servertest.OK(t, c.Close()) })
	servertest.OK(t, c.GetContext(ctx, &c.version, "SELECT VERSION()"))
	// Both write redo at some other time: statistics of a table, and the purge of what no transaction sees any more.
	_, err = c.ExecContext(ctx, "SET GLOBAL innodb_stats_auto_recalc = 0")
	servertest.OK(t, err)
	_, err = c.ExecContext(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT")
	servertest.OK(t, err)
	for range 5 {
		c.count(t, "nothing", 1, func(context.Context) error { return nil })
	}
	c.nothing = c.fewest["nothing"]
	delete(c.fewest, "nothing")
	return c
}

// count does work of n units, and keeps the fewest of each count.
func (c *counter) count(t *testing.T, name string, n int, work func(context.Context) error) {
	t.Helper()
	before := c.read(t)
	var start, end runtime.MemStats
	runtime.ReadMemStats(&start)
	err := work(t.Context())
	runtime.ReadMemStats(&end)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	now := c.read(t)
	now[len(now)-1] = float64(end.Mallocs - start.Mallocs)
	fewest, again := c.fewest[name]
	for i := range now {
		now[i] = (now[i] - before[i] - c.nothing[i]) / float64(n)
		if again {
			now[i] = min(now[i], fewest[i])
		}
	}
	c.fewest[name] = now
}

// read returns what the server has counted but for this connection, once no other is busy: the client may have an
// answer before the server has counted it.
func (c *counter) read(t *testing.T) (all counts) {
	t.Helper()
	ctx := t.Context()
	for busy := 1; busy > 0; {
		servertest.OK(t, c.GetContext(ctx, &busy, "SELECT COUNT(*) FROM information_schema.processlist"+
			" WHERE command IN ('Query', 'Execute') AND id <> CONNECTION_ID()"))
	}
	sign := 1.0
	for _, of := range []string{"GLOBAL", "SESSION"} {
		var status []struct {
			Name  string  `db:"Variable_name"`
			Value float64 `db:"Value"`
		}
		servertest.OK(t, c.SelectContext(ctx, &status, "SHOW "+of+" STATUS WHERE Variable_name IN ('Questions',"+
			" 'Bytes_received', 'Bytes_sent') OR Variable_name LIKE 'Handler_read_%'"))
		for _, s := range status {
			i := map[string]int{"Questions": 0, "Bytes_received": 2, "Bytes_sent": 3}[s.Name]
			if strings.HasPrefix(s.Name, "Handler_") {
				i = 1
			}
			all[i] += sign * s.Value
		}
		sign = -1
	}
	servertest.OK(t, c.GetContext(ctx, &all[4], c.lsn))
	return all
}

// String has a line for each count of each work.
func (c *counter) String() string {
	text := "# on " + c.version + ", with " + runtime.Version() + "\n"
	for _, name := range slices.Sorted(maps.Keys(c.fewest)) {
		for i, what := range counted {
			text += fmt.Sprintf("%s, %s: %v\n", name, what, math.Round(1000*c.fewest[name][i])/1000)
		}
	}
	return text
}
