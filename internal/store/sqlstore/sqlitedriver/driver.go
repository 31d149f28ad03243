// Package sqlitedriver is the driver of SQLite with the functions that the statements of package sqlstore call. Package
// sqlite of the root registers it there.
package sqlitedriver

import (
	"database/sql/driver"
	"hash/crc32"
	"strconv"
	"time"

	"modernc.org/sqlite"

	"github.com/delaytask/delaytask/internal/row"
)

func init() {
	sqlite.MustRegisterScalarFunction("delaytask_now", 0, now)
	sqlite.MustRegisterDeterministicScalarFunction("delaytask_add", 2, add)
	sqlite.MustRegisterDeterministicScalarFunction("delaytask_crc32", 1, checksum)
}

// NewConnector makes connections to the file of the URI.
func NewConnector(uri string) (driver.Connector, error) { return sqlite.NewConnector(uri) }

func now(*sqlite.FunctionContext, []driver.Value) (driver.Value, error) {
	return row.Time(time.Now().UnixMicro()).String(), nil
}

// add adds milliseconds to a time. Garbage must not fail the statement, and with it the other rows of a batch. What is
// no time stays as it is, and what is no number adds nothing. Both are reported when the row is read back.
func add(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	var t row.Time
	if err := t.Scan(args[0]); err != nil || t.IsZero() {
		return args[0], nil
	}
	millis, _ := args[1].(int64)
	return (t + row.Time(millis*1000)).String(), nil
}

func checksum(_ *sqlite.FunctionContext, args []driver.Value) (driver.Value, error) {
	var text []byte
	switch of := args[0].(type) {
	case int64:
		text = strconv.AppendInt(nil, of, 10)
	case string:
		text = []byte(of)
	case []byte:
		text = of
	}
	return int64(crc32.ChecksumIEEE(text)), nil
}
