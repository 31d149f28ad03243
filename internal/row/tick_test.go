package row

import "testing"

func FuzzReadContext(f *testing.F) {
	full := TickOf{Previous: MinTime, Following: MaxTime, Success: MinTime + 1, Missed: 7, Zone: "Asia/Shanghai"}
	f.Add(full.Context())
	for _, seed := range []string{
		`{}`, `null`, `{"previous":""}`, `{"previous":"soon"}`, `{"following":7}`, `{"missed":-1,"later":true}`, `[`,
		``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, column []byte) {
		var of, again TickOf
		if of.ReadContext(column) != nil {
			return
		}
		if err := again.ReadContext(of.Context()); err != nil || again != of {
			t.Fatalf("%q is read as %+v, which comes back as %+v, %v", column, of, again, err)
		}
	})
}

func TestContextThatIsNotThereSaysNothing(t *testing.T) {
	t.Parallel()
	of := TickOf{Schedule: "s", Tick: MinTime}
	if err := of.ReadContext(nil); err != nil || of != (TickOf{Schedule: "s", Tick: MinTime}) {
		t.Errorf("%+v, %v", of, err)
	}
}
