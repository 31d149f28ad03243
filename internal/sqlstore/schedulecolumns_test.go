package sqlstore

import (
	"database/sql"
	"reflect"
	"strings"
	"testing"
)

// Whatever one column holds, the schedule is either sound or broken with that column's name, and keeps its id.
func FuzzDecodeSchedule(f *testing.F) {
	columns := reflect.TypeFor[scheduleRecord]()
	for i := range columns.NumField() {
		for _, seed := range []string{"-1", "{"} {
			f.Add(uint(i), []byte(seed), false)
		}
		f.Add(uint(i), []byte(nil), true)
	}
	f.Fuzz(func(t *testing.T, i uint, value []byte, null bool) {
		i %= uint(columns.NumField())
		column := columns.Field(int(i)).Tag.Get("db")
		r := scheduleRecord{ID: sql.RawBytes("7"), Hash: sql.RawBytes(strings.Repeat("0f", 32))}
		for n := range columns.NumField() {
			field := reflect.ValueOf(&r).Elem().Field(n)
			switch name := columns.Field(n).Tag.Get("db"); {
			case field.Len() > 0 || name == "headers" || name == "revision":
			case strings.HasSuffix(name, "_time"):
				field.SetBytes([]byte("2026-05-04 12:00:00.000000"))
			default:
				field.SetBytes([]byte("0"))
			}
		}
		if _, err := r.schedule(); err != nil {
			t.Fatal(err)
		}
		if null {
			value = nil
		}
		reflect.ValueOf(&r).Elem().Field(int(i)).SetBytes(value)
		decoded, err := r.schedule()
		if err != nil && !strings.HasPrefix(err.Error(), "column "+column+": ") {
			t.Fatalf("column %s holds %q: %v", column, value, err)
		}
		if column != "id" && decoded.ID != 7 || err == nil && decoded.ID <= 0 {
			t.Fatalf("column %s holds %q: the id is %d", column, value, decoded.ID)
		}
	})
}
