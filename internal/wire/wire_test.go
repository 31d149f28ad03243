package wire

import (
	"encoding/json"
	"math"
	"testing"
	"time"
)

func TestTimeIsUTCWithMilliseconds(t *testing.T) {
	t.Parallel()
	east := time.Date(2027, 1, 31, 10, 30, 0, 123_999_999, time.FixedZone("", 2*3600))
	if got := Time(east).String(); got != "2027-01-31T08:30:00.123Z" {
		t.Errorf("got %s", got)
	}
	if (Time{}).String() != "" {
		t.Error("the zero moment is written")
	}
}

func TestTimesAreReadWithTheirZone(t *testing.T) {
	t.Parallel()
	var got Time
	if err := json.Unmarshal([]byte(`"2027-01-31T10:30:00.25+02:00"`), &got); err != nil ||
		got.String() != "2027-01-31T08:30:00.250Z" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{
		`""`, `"2027-01-31"`, `"2027-01-31T10:30:00"`, `"2027-01-31 10:30:00Z"`, `"2016-12-31T23:59:60Z"`,
		`"2027-02-30T00:00:00Z"`,
		`"2027-01-31T24:00:00Z"`, `"2027-01-31T1:00:00Z"`, `"2027-01-31T10:30:00,5Z"`, `1700000000`, `"now"`,
	} {
		if err := json.Unmarshal([]byte(bad), &got); err == nil {
			t.Errorf("%s was read as %v", bad, got)
		}
	}
}

func TestMomentsAreTextsOrNumbersOfTheirOwnLength(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`"2027-01-31T10:30:00.25+02:00"`: "2027-01-31T08:30:00.250000Z",
		`1801384200`:                     "2027-01-31T08:30:00.000000Z", `"1801384200"`: "2027-01-31T08:30:00.000000Z",
		`1801384200250`: "2027-01-31T08:30:00.250000Z", `1801384200250001`: "2027-01-31T08:30:00.250001Z",
		`1000000000`: "2001-09-09T01:46:40.000000Z", `9999999999999999`: "2286-11-20T17:46:39.999999Z",
	} {
		var got Moment
		err := json.Unmarshal([]byte(text), &got)
		if at := got.Std().Format("2006-01-02T15:04:05.000000Z07:00"); err != nil || at != want {
			t.Errorf("%s gave %s, %v, want %s", text, at, err, want)
		}
	}
	for _, bad := range []string{
		`0`, `86400`, `999999999`, `10000000000`, `100000000000`, `86400000000`, `99999999999999`,
		`1801384200250000000`, `-1801384200`,
		`"+1801384200"`, `1801384200.0`, `1.801384200e9`, `"0801384200"`, `"180138420 "`, `99999999999999999999`,
		`true`, `{}`, `""`, `"now"`,
		`"0000-00-00T00:00:00Z"`, `"10000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59-00:01"`,
		`"0000-01-01T00:00:00+00:01"`, `"2037-03-29T02:30:00 Europe/Berlin"`,
		`"2037-03-29T02:30:00+24:00"`,
		`"2037-03-29T02:30:00Z m=+0.1"`,
	} {
		var got Moment
		if err := json.Unmarshal([]byte(bad), &got); err == nil {
			t.Errorf("%s was read as %v", bad, got.Std())
		}
	}
}

func TestIDsAreStringsAndNeverFloats(t *testing.T) {
	t.Parallel()
	if text, err := json.Marshal(ID(math.MaxInt64)); err != nil || string(text) != `"9223372036854775807"` {
		t.Errorf("written %s, %v", text, err)
	}
	for text, want := range map[string]ID{`"1"`: 1, `9007199254740993`: 9007199254740993,
		`"9223372036854775807"`: math.MaxInt64} {
		var id ID
		if err := json.Unmarshal([]byte(text), &id); err != nil || id != want {
			t.Errorf("%s gave %d, %v", text, id, err)
		}
	}
	for _, bad := range []string{
		"", "0", "-1", "+1", "01", "1.0", "1e3", "abc", "٣", " 1", "1 ", "9223372036854775808", "99999999999999999999",
		"0x10", "1_0", "007", "\x00",
	} {
		if id, err := ParseID(bad); err == nil {
			t.Errorf("%q was read as %d", bad, id)
		}
	}
}

func TestDurationsAreTextsOrMilliseconds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		`"30m"`: 30 * time.Minute, `"7d"`: 168 * time.Hour, `1500`: 1500 * time.Millisecond, `0`: 0,
		`"0"`: 0,
	} {
		var d Duration
		if err := json.Unmarshal([]byte(text), &d); err != nil || d.Std() != want {
			t.Errorf("%s gave %v, %v", text, d.Std(), err)
		}
	}
	for _, bad := range []string{`-1`, `1.5`, `"30"`, `1e3`, `1e309`, `"-1s"`, `"x"`, `""`, `true`, `{}`,
		`9223372036855`, `99999999999999999999`,
		`-9223372036854775808`, `"-1ns"`, `"1e309"`, `"NaN"`, `"1 h"`, `["1h"]`} {
		var d Duration
		if err := json.Unmarshal([]byte(bad), &d); err == nil {
			t.Errorf("%s gave %v", bad, d.Std())
		}
	}
}

func TestBodiesThatAreNoJSONAreText(t *testing.T) {
	t.Parallel()
	for stored, want := range map[string]string{
		"":         `{}`,
		`{"a":1}`:  `{"body":{"a":1}}`,
		`"x"`:      `{"body":"x"}`,
		`hello`:    `{"body_text":"hello"}`,
		`{"a":1}}`: `{"body_text":"{\"a\":1}}"}`,
	} {
		text, err := json.Marshal(BodyOf([]byte(stored)))
		if err != nil || string(text) != want {
			t.Errorf("%q is %s, %v; want %s", stored, text, err, want)
		}
		var back Body
		if err := json.Unmarshal(text, &back); err != nil || string(back.Bytes()) != stored {
			t.Errorf("%q came back as %q, %v", stored, back.Bytes(), err)
		}
	}
}

// What is read without an error reads the same when it is written.
func FuzzScalars(f *testing.F) {
	for _, s := range []string{`"1"`, `12`, `"30m"`, `"2027-01-31T08:30:00Z"`, `null`, `-1`, `1e3`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var id, id2 ID
		if err := json.Unmarshal(data, &id); err == nil {
			roundTrip(t, id, &id2)
		}
		var d, d2 Duration
		if err := json.Unmarshal(data, &d); err == nil {
			roundTrip(t, d, &d2)
		}
	})
}

func roundTrip[T comparable](t *testing.T, value T, back *T) {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, back); err != nil || *back != value {
		t.Fatalf("%v was written %s and read %v, %v", value, text, *back, err)
	}
}
