package storetest

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

var insertTests = []test{
	{"Every column comes back as it was saved, and the rest is as in a new task", everyColumnComesBack},
	{"Rows of a batch that differ in one column come back", neighboursComeBack},
	{"Extreme values come back as they were saved", extremesComeBack},
	{"Bodies come back byte by byte", bodiesComeBack},
	{"More rows than one statement takes are stored all or none", func(t *tester) {
		rows := make([]row.Row, 2500)
		for i := range rows {
			rows[i] = t.task(int64(i%2499) + 1)
		}
		t.refused(t.store.Insert(t.Context(), nil, rows), row.ClassDuplicate)
		t.missing(1, 2000, 2499)
		rows[2499].ID = 2500
		t.insert(rows...)
		t.newest(2003, 3, 2002, 2001, 2000)
		t.written(rows[2499])
	}},
	{"Spans are kept in whole milliseconds", func(t *tester) {
		const rest = 900 * time.Microsecond
		want := t.task(1)
		want.TTR, want.MaxLate, want.Delay = 1500*time.Millisecond, 20*time.Millisecond, 30*time.Millisecond
		more := want
		more.TTR, more.MaxLate, more.Delay = want.TTR+rest, want.MaxLate+rest, want.Delay+rest
		t.insert(more)
		t.written(want)
	}},
}

func everyColumnComesBack(t *tester) {
	want := row.Row{
		ID:          1<<62 + 1, // is not exact as floating point
		Tag:         "Pay:card/2026-11_eu.west",
		Key:         `ключ \' " é`,
		Body:        []byte("plain \"text\", ü \\ ' \x00 😀"),
		MaxAttempts: 7,
		TTR:         90*time.Second + 123*time.Millisecond,
		Priority:    -100,
		Headers:     []byte(`{"traceparent": "00-0af7", "user": "Zoë 🚀"}`),
		MaxLate:     1500 * time.Millisecond,
		LatePolicy:  delaytask.LateFail,
		Delay:       1234 * time.Millisecond,
		Expected:    row.At(time.Date(2026, 11, 1, 5, 30, 0, 123456000, time.UTC)), // an hour that New York has twice
		Due:         t.start.Add(23 * time.Microsecond),
	}
	got := t.inserted(want)
	if got.Created.IsZero() || got.Updated.IsZero() {
		t.Fatalf("created %v, updated %v, want both set", got.Created, got.Updated)
	}
	// A database may write JSON with other spaces than it was given.
	var x, y any
	if json.Unmarshal(got.Headers, &x) != nil || json.Unmarshal(want.Headers, &y) != nil || !reflect.DeepEqual(x, y) {
		t.Fatalf("headers %s, want %s", got.Headers, want.Headers)
	}
	want.Headers = got.Headers
	t.written(want)
}

// neighboursComeBack stores two rows at a time that differ in one column.
func neighboursComeBack(t *tester) {
	id := int64(1)
	for name, differ := range map[string]func(*row.Row){
		"tag":          func(r *row.Row) { r.Tag += "2" },
		"max attempts": func(r *row.Row) { r.MaxAttempts += 7 },
		"ttr":          func(r *row.Row) { r.TTR += time.Minute },
		"priority":     func(r *row.Row) { r.Priority += 5 },
		"headers":      func(r *row.Row) { r.Headers = []byte(`{"a":"b"}`) },
		"max lateness": func(r *row.Row) { r.MaxLate = time.Second },
		"late policy":  func(r *row.Row) { r.LatePolicy = delaytask.LateFail },
		"delay":        func(r *row.Row) { r.Delay += time.Hour },
		"expected":     func(r *row.Row) { r.Expected = r.Expected.Add(time.Hour) },
		"due":          func(r *row.Row) { r.Due = r.Due.Add(time.Hour) },
		"no due":       withoutDue,
	} {
		first, second := t.task(id), t.task(id+1)
		differ(&second)
		t.insert(first, second)
		t.Logf("stored beside a row with another %s:", name)
		t.written(first)
		t.written(second)
		id += 2
	}
}

func extremesComeBack(t *tester) {
	longest := time.Duration(math.MaxInt64).Truncate(time.Millisecond)
	smallest := row.Row{ID: 1, Tag: "x", TTR: row.MinTTR, Priority: -100, Expected: row.MinTime, Due: row.MinTime}
	largest := row.Row{
		ID: math.MaxInt64, Tag: strings.Repeat("t", 128), Key: strings.Repeat("🚀", 255), Body: []byte("1"),
		MaxAttempts: 1_000_000, TTR: 24 * time.Hour, Priority: 100, MaxLate: longest, LatePolicy: delaytask.LateSkip,
		Delay: longest, Expected: row.MaxTime, Due: row.MaxTime,
	}
	odd := t.task(2)
	odd.Expected, odd.Due = row.MaxTime-1, row.MinTime+1
	for _, want := range []row.Row{smallest, largest, odd} {
		t.insert(want)
		t.written(want)
	}
}

func bodiesComeBack(t *tester) {
	// Every code point but the surrogates, which UTF-8 does not have.
	var all bytes.Buffer
	for r := range rune(0x110000) {
		if r < 0xd800 || r > 0xdfff {
			all.WriteRune(r)
		}
	}
	bodies := map[string][]byte{
		"nothing":                  nil,
		"no bytes":                 {},
		"a NUL":                    []byte("a\x00b\x00"),
		"spaces at the end":        []byte("a  \n"),
		"quotes and backslashes":   []byte(`'";\' -- \0 \Z % _ ? $1 :name`),
		"four-byte characters":     []byte("🚀🇪🇺👩‍👩‍👧"),
		"composed and decomposed":  []byte("\u00e9 e\u0301"),
		"a mebibyte":               bytes.Repeat([]byte("0123456789abcdef"), 1<<16),
		"every character there is": all.Bytes(),
	}
	id := int64(0)
	for name, body := range bodies {
		id++
		r := t.task(id)
		r.Body = body
		if got := t.inserted(r).Body; !bytes.Equal(got, body) {
			t.Errorf("%s: a body of %d bytes came back changed, with %d", name, len(body), len(got))
		}
		claimed := t.claim(ref(r))
		if len(claimed.Rows) != 1 || !bytes.Equal(claimed.Rows[0].Body, body) {
			t.Errorf("%s: a claim did not bring the body back", name)
		}
	}
}
