package sqlstore

import (
	"strings"
	"testing"

	"github.com/delaytask/delaytask/internal/row"
)

// Whatever one column holds, the row is either sound or broken with that column's name. It keeps its id, so that it can
// be set to failed alone.
func FuzzDecodeTask(f *testing.F) {
	fuzzDecode(f, wholeColumns, map[string]string{"schedule": "s", "tick_context": "{}"},
		func(r *row.Row) int64 { return r.ID })
}

func FuzzDecodeSchedule(f *testing.F) {
	fuzzDecode(f, schedules.columns, map[string]string{"definition": strings.Repeat("0f", 32)},
		func(s *row.Schedule) int64 { return s.ID })
}

// fuzzDecode begins with a sound row; said gives some of its columns.
func fuzzDecode[T any](f *testing.F, columns []column[T], said map[string]string, idOf func(*T) int64) {
	sound := make([][]byte, len(columns))
	for i, c := range columns {
		switch value, known := said[c.name]; {
		case known:
			sound[i] = []byte(value)
		case c.name == "id":
			sound[i] = []byte("7")
		case c.form == aMoment, c.form == aMomentOfRun:
			sound[i] = []byte("2026-05-04 12:00:00.000000")
		case c.form != aJSON:
			sound[i] = []byte("0")
		}
		for _, seed := range []string{"-1", "{"} {
			f.Add(uint(i), []byte(seed), false)
		}
		f.Add(uint(i), []byte(nil), true)
	}
	decode := func(place int, value []byte) (r T, err error) {
		var d decoder
		for i, c := range columns {
			raw := sound[i]
			if i == place {
				raw = value
			}
			c.decode(&d, &r, raw)
		}
		return r, d.err
	}
	f.Fuzz(func(t *testing.T, i uint, value []byte, null bool) {
		if _, err := decode(-1, nil); err != nil {
			t.Fatal(err)
		}
		place := int(i % uint(len(columns)))
		if null {
			value = nil
		}
		name := columns[place].name
		r, err := decode(place, value)
		if err != nil && !strings.HasPrefix(err.Error(), "column "+name+": ") {
			t.Fatalf("column %s holds %q: %v", name, value, err)
		}
		if id := idOf(&r); name != "id" && id != 7 || err == nil && id <= 0 {
			t.Fatalf("column %s holds %q: the id is %d", name, value, id)
		}
	})
}
