package row

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestClipCutsBetweenCharacters(t *testing.T) {
	t.Parallel()
	f := func(s string, limit int, want string) {
		t.Helper()
		if got := Clip(s, limit); got != want {
			t.Errorf("Clip(%q, %d) = %q, want %q", s, limit, got, want)
		}
	}
	f("", 0, "")
	f("abc", 3, "abc")
	f("abc", 2, "ab")
	f("abc", -1, "")
	f("aé", 2, "a")
	f("aé", 3, "aé")
	f("😀😀", 7, "😀")
	f("a\x00b", 8, "a\x00b")
	f("a\xffb", 8, "a\uFFFDb")
	f("a\xffb", 3, "a")
	f("\x80\x80\x80\x80\x80\x80", 5, "\uFFFD")
}

func TestClipIsAlwaysShortValidAndAPrefix(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) + rapid.String().Draw(t, "text")
		limit := rapid.IntRange(0, 40).Draw(t, "limit")
		got := Clip(s, limit)
		if len(got) > limit || !utf8.ValidString(got) {
			t.Fatalf("Clip(%q, %d) = %q", s, limit, got)
		}
		if utf8.ValidString(s) && (!strings.HasPrefix(s, got) || len(got) < min(len(s), limit)-utf8.UTFMax) {
			t.Fatalf("Clip(%q, %d) = %q, want the longest prefix", s, limit, got)
		}
	})
}

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
	if len(a.Error) != maxAttemptError-1 || !utf8.ValidString(a.Error) || !strings.HasSuffix(a.Error, "é…") {
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

func TestHeadersThatAreNoStringsAreLeftOut(t *testing.T) {
	t.Parallel()
	f := func(column string, want map[string]string) {
		t.Helper()
		if got := DecodeHeaders([]byte(column)); !maps.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%s decodes as %#v, want %#v", column, got, want)
		}
	}
	f(`{"a":"1","b":""}`, map[string]string{"a": "1", "b": ""})
	f(`{"a":"1","b":2,"c":null,"d":{"e":"f"}}`, map[string]string{"a": "1"})
	f(`{"b":2}`, nil)
	f(`{}`, nil)
	f(`[]`, nil)
	f(`null`, nil)
	f(`no JSON`, nil)
	f(``, nil)
}

func FuzzDecodeHeaders(f *testing.F) {
	for _, seed := range []string{
		`{"a":"1","b":2}`, `{"a":null,"":""}`, `{"a":"\ud800"}`, "{\"\xff\":\"\xff\"}", `[]`, `null`, `{`, ``,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, column []byte) {
		headers := DecodeHeaders(column)
		if headers == nil {
			return
		}
		stored, err := json.Marshal(headers)
		if again := DecodeHeaders(stored); err != nil || len(headers) == 0 || !maps.Equal(again, headers) {
			t.Fatalf("%q decodes as %q, which comes back as %q, %v", column, headers, again, err)
		}
	})
}

// traced prints as the errors of pkg/errors do.
type traced struct {
	text string
	form func() string
}

func (t traced) Error() string { return t.text }

func (t traced) Format(s fmt.State, _ rune) {
	if s.Flag('+') {
		_, _ = fmt.Fprint(s, t.form())
		return
	}
	_, _ = fmt.Fprint(s, t.text)
}

func TestStacksAreFoundWhereverTheErrorIs(t *testing.T) {
	t.Parallel()
	of := func(text string) error { return traced{text, func() string { return text + "\nmain.f\n\tf.go:1" }} }
	plain, silent := errors.New("plain"), traced{"silent", func() string { return "silent" }}
	broken := traced{"broken", func() string { panic("a bug") }}
	for _, c := range []struct {
		name  string
		err   error
		limit int
		want  string
	}{
		{"nil", nil, 99, ""},
		{"none", fmt.Errorf("a: %w", errors.Join(plain, silent)), 99, ""},
		{"bare", of("x"), 99, "\n\nx\nmain.f\n\tf.go:1"},
		{"wrapped", fmt.Errorf("a: %w", of("x")), 99, "\n\nx\nmain.f\n\tf.go:1"},
		{"joined", errors.Join(plain, of("x"), of("y")), 99, "\n\nx\nmain.f\n\tf.go:1\n\ny\nmain.f\n\tf.go:1"},
		{"over the limit", errors.Join(of("x"), of("y")), 9, "\n\nx\nmain.f\n\tf.go:1"},
	} {
		if got := Stacks(c.err, c.limit); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := Stacks(broken, 99); !strings.Contains(got, "PANIC") {
		t.Errorf("of a Format method that panics: %q", got)
	}
}
