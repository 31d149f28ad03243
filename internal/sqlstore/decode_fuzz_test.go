package sqlstore

import (
	"database/sql"
	"reflect"
	"strings"
	"testing"
)

// sound returns a record that can be decoded.
func sound() record {
	raw := func(text string) sql.RawBytes { return sql.RawBytes(text) }
	const moment = "2026-05-04 12:00:00.000000"
	return record{
		ID: raw("7"), Tag: raw("t"), Body: raw("{}"), Status: raw("0"), Version: raw("3"), Attempt: raw("1"), CrashCount: raw("0"),
		TTR: raw("15000"), Priority: raw("0"), MaxLate: raw("0"), LatePolicy: raw("0"), IPAddress: raw("0"), Executor: raw(""),
		Delay: raw("0"), Expected: raw(moment), Due: raw(moment), Created: raw(moment), Updated: raw(moment),
		DBTime: raw(moment), DBServer: raw("s"),
	}
}

// Whatever one column holds, the row is either sound or broken by name, and keeps its id, so that it can be set aside
// alone.
func FuzzDecodeRecord(f *testing.F) {
	columns := reflect.TypeFor[record]()
	for i := range columns.NumField() {
		for _, seed := range []string{"-1", "{"} {
			f.Add(uint(i), []byte(seed), false)
		}
		f.Add(uint(i), []byte(nil), true)
	}
	f.Fuzz(func(t *testing.T, i uint, value []byte, null bool) {
		i %= uint(columns.NumField())
		column := columns.Field(int(i)).Tag.Get("db")
		r := sound()
		if null {
			value = nil
		}
		reflect.ValueOf(&r).Elem().Field(int(i)).SetBytes(value)
		decoded, err := r.row()
		if err != nil && !strings.HasPrefix(err.Error(), "column "+column+": ") {
			t.Fatalf("column %s holds %q: %v", column, value, err)
		}
		if _, err := r.reading(); err != nil && column != "db_time" {
			t.Fatalf("column %s holds %q: the server's time is lost: %v", column, value, err)
		}
		state, due := r.state(), r.due()
		if decoded.ID != state.ID || decoded.ID != due.ID || column != "id" && decoded.ID != 7 || err == nil && decoded.ID <= 0 {
			t.Fatalf("column %s holds %q: the ids are %d, %d and %d", column, value, decoded.ID, state.ID, due.ID)
		}
	})
}
