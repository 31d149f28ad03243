package row

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func attemptsOf(t *testing.T, column []byte) []Attempt {
	t.Helper()
	var attempts []Attempt
	if err := json.Unmarshal(column, &attempts); err != nil {
		t.Fatalf("%v in %s", err, column)
	}
	return attempts
}

func TestAppendAttemptKeepsTheLastTen(t *testing.T) {
	t.Parallel()
	var column []byte
	for n := 1; n <= 13; n++ {
		column = AppendAttempt(column, Attempt{N: n, Error: "no"})
	}
	attempts := attemptsOf(t, column)
	if len(attempts) != 10 || attempts[0].N != 4 || attempts[9].N != 13 {
		t.Fatalf("kept %s", column)
	}
}

func TestAppendAttemptWritesEveryField(t *testing.T) {
	t.Parallel()
	due := time.Date(2026, 5, 4, 12, 0, 0, 1000, time.UTC)
	column := AppendAttempt(nil, Attempt{
		N: 2, Due: due, Started: due.Add(1), Finished: due.Add(2), Executor: "h:1:t:9", Error: "a < b & c",
	})
	const want = `[{"n":2,"due":"2026-05-04T12:00:00.000001Z","started":"2026-05-04T12:00:00.000001001Z",` +
		`"finished":"2026-05-04T12:00:00.000001002Z","executor":"h:1:t:9","error":"a < b & c"}]`
	if string(column) != want {
		t.Errorf("got  %s\nwant %s", column, want)
	}
	if unknown := AppendAttempt(nil, Attempt{N: 1}); bytes.Contains(unknown, []byte("started")) {
		t.Errorf("an unknown start is written: %s", unknown)
	}
}

func TestAppendAttemptClipsTheError(t *testing.T) {
	t.Parallel()
	a := attemptsOf(t, AppendAttempt(nil, Attempt{Error: strings.Repeat("é", 10<<20) + "\xff"}))[0]
	if len(a.Error) != maxAttemptError || !utf8.ValidString(a.Error) {
		t.Fatalf("the error has %d bytes", len(a.Error))
	}
}

func TestAppendAttemptSurvivesWhatIsStored(t *testing.T) {
	t.Parallel()
	for _, existing := range []string{"", "null", "{}", "7", "[", `[{"n":`, "\xff\xfe", `"text"`, "not json"} {
		if a := attemptsOf(t, AppendAttempt([]byte(existing), Attempt{N: 5})); len(a) != 1 || a[0].N != 5 {
			t.Errorf("%q gave %v", existing, a)
		}
	}
	kept := AppendAttempt([]byte(`[{"n":1,"later":true}, 3]`), Attempt{N: 2})
	if !bytes.HasPrefix(kept, []byte(`[{"n":1,"later":true},3,{"n":2`)) {
		t.Errorf("got %s, want what was there and the new one", kept)
	}
}

func FuzzAppendAttempt(f *testing.F) {
	f.Add([]byte(nil), "text")
	f.Add([]byte(`[{"n":1}]`), "\xff")
	f.Fuzz(func(t *testing.T, existing []byte, text string) {
		column := AppendAttempt(existing, Attempt{N: 1, Error: text})
		var entries []json.RawMessage
		if err := json.Unmarshal(column, &entries); err != nil || len(entries) == 0 || len(entries) > 10 {
			t.Fatalf("%d entries, %v, in %q", len(entries), err, column)
		}
	})
}
