package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/delaytask/delaytask"
)

func TestBodyIsStoredAsItIs(t *testing.T) {
	t.Parallel()
	type named []byte
	f := func(body any, want string) {
		t.Helper()
		s, err := NewSave("t", body, 0, Limits{})
		if err != nil || s.Body == nil || string(s.Body) != want {
			t.Errorf("body %#v gave %q, %v, want %q", body, s.Body, err, want)
		}
	}
	f(nil, "")
	f([]byte(nil), "")
	f([]byte{}, "")
	f(json.RawMessage(nil), "")
	f("", "")
	f("not JSON", "not JSON")
	f([]byte("a\x00b"), "a\x00b")
	f(json.RawMessage(`{"a":1}`), `{"a":1}`)
	f(map[string]int{"a": 1}, `{"a":1}`)
	f((*int)(nil), "null")
	f(named("a"), `"YQ=="`)
	f(42, "42")

	mine := []byte("before")
	for _, body := range []any{mine, json.RawMessage(mine)} {
		s, err := NewSave("t", body, 0, Limits{})
		copy(mine, "after!")
		if err != nil || string(s.Body) != "before" {
			t.Errorf("a change of the caller's slice reached the save: %q, %v", s.Body, err)
		}
		copy(mine, "before")
	}
}

func TestBodyIsRefused(t *testing.T) {
	t.Parallel()
	every := make([]byte, 256)
	for i := range every {
		every[i] = byte(i)
	}
	cycle := map[string]any{}
	cycle["self"] = cycle
	f := func(body any, limit int, want error) {
		t.Helper()
		if _, err := NewSave("t", body, 0, Limits{Body: limit}); !errors.Is(err, want) ||
			(want == nil) != (err == nil) {
			t.Errorf("body of type %T with limit %d gave %v, want %v", body, limit, err, want)
		}
	}
	f(every, 0, delaytask.ErrInvalidBody)
	f("\xff", 0, delaytask.ErrInvalidBody)
	f(json.RawMessage("\xff"), 0, delaytask.ErrInvalidBody)
	f(make(chan int), 0, delaytask.ErrInvalidBody)
	f(math.NaN(), 0, delaytask.ErrInvalidBody)
	f(cycle, 0, delaytask.ErrInvalidBody)
	f("abc", 3, nil)
	f("abcd", 3, delaytask.ErrBodyTooLarge)
	f([]byte("abcd"), 3, delaytask.ErrBodyTooLarge)
	f([]string{"a"}, 5, nil)
	f([]string{"ab"}, 5, delaytask.ErrBodyTooLarge)
	f(make([]byte, DefaultBodyLimit), 0, nil)
	f(make([]byte, DefaultBodyLimit+1), 0, delaytask.ErrBodyTooLarge)
	f(make([]byte, 20<<20), 0, delaytask.ErrBodyTooLarge)
}

func TestDelayIsRoundedUpToAMillisecond(t *testing.T) {
	t.Parallel()
	f := func(delay, want time.Duration, wantErr error) {
		t.Helper()
		s, err := NewSave("t", nil, delay, Limits{})
		if s.Delay != want || !errors.Is(err, wantErr) || (err == nil) != (wantErr == nil) {
			t.Errorf("delay %d gave %v, %v, want %v, %v", delay, s.Delay, err, want, wantErr)
		}
	}
	f(0, 0, nil)
	f(1, time.Millisecond, nil)
	f(400*time.Microsecond, time.Millisecond, nil)
	f(time.Millisecond, time.Millisecond, nil)
	f(time.Millisecond+1, 2*time.Millisecond, nil)
	f(delaytask.MaxDelay, delaytask.MaxDelay, nil)
	f(delaytask.MaxDelay+1, 0, delaytask.ErrDelayTooLong)
	f(math.MaxInt64, 0, delaytask.ErrDelayTooLong)
	f(-1, 0, delaytask.ErrInvalidDelay)
	f(math.MinInt64, 0, delaytask.ErrInvalidDelay)
}

func TestTimeKeepsItsInstant(t *testing.T) {
	t.Parallel()
	berlin := time.FixedZone("CEST", 2*60*60)
	at := time.Date(2026, 10, 25, 2, 30, 0, 1, berlin)
	s, err := NewSave("t", nil, 0, Limits{}, delaytask.WithTime(at))
	if err != nil || !s.At.Equal(at) || s.At.Location() != time.UTC {
		t.Errorf("got %v, %v, want the instant %v in UTC", s.At, err, at)
	}
	now := time.Now()
	s, err = NewSave("t", nil, 0, Limits{}, delaytask.WithTime(now))
	if err != nil || s.At != now.Round(0).UTC() {
		t.Errorf("the monotonic reading was kept: %v, %v", s.At, err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	f := func(want error, opts ...delaytask.Option) {
		t.Helper()
		s, err := NewSave("t", nil, 0, Limits{}, opts...)
		if !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("got %+v, %v, want %v", s, err, want)
		}
	}
	past := time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC)
	future := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	f(nil, delaytask.WithTime(past))
	f(nil, delaytask.WithTime(future.Add(-time.Microsecond)))
	f(delaytask.ErrInvalidTime, delaytask.WithTime(time.Time{}))
	f(delaytask.ErrInvalidTime, delaytask.WithTime(time.Unix(0, 0)))
	f(delaytask.ErrInvalidTime, delaytask.WithTime(past.Add(-1)))
	f(delaytask.ErrDelayTooLong, delaytask.WithTime(future.Add(-1))) // would be rounded up into the year 9999
	f(delaytask.ErrDelayTooLong, delaytask.WithTime(future))

	f(nil, delaytask.WithKey("S3:a"))
	f(delaytask.ErrInvalidKey, delaytask.WithKey("s3:a"))

	f(nil, delaytask.WithID(1))
	f(delaytask.ErrInvalidID, delaytask.WithID(0))
	f(delaytask.ErrInvalidID, delaytask.WithID(-1))

	f(nil, delaytask.WithMaxAttempts(0))
	f(nil, delaytask.WithMaxAttempts(1_000_000))
	f(delaytask.ErrInvalidMaxAttempts, delaytask.WithMaxAttempts(-1))
	f(delaytask.ErrInvalidMaxAttempts, delaytask.WithMaxAttempts(math.MaxInt32))
	f(delaytask.ErrInvalidOption, delaytask.WithMaxAttempts(3), delaytask.WithNoAttemptLimit())

	f(nil, delaytask.WithTTR(0))
	f(nil, delaytask.WithTTR(24*time.Hour))
	f(delaytask.ErrInvalidTTR, delaytask.WithTTR(-1))
	f(delaytask.ErrInvalidTTR, delaytask.WithTTR(24*time.Hour+1))

	f(nil, delaytask.WithPriority(-100))
	f(nil, delaytask.WithPriority(100))
	f(delaytask.ErrInvalidPriority, delaytask.WithPriority(-101))
	f(delaytask.ErrInvalidPriority, delaytask.WithPriority(math.MaxInt))

	f(nil, delaytask.WithHeaders(nil))
	f(nil, delaytask.WithHeader("a", strings.Repeat("x", 16<<10-len(`{"a":""}`))))
	f(delaytask.ErrInvalidHeaders, delaytask.WithHeader("a", strings.Repeat("x", 16<<10-len(`{"a":""}`)+1)))
	f(delaytask.ErrInvalidHeaders, delaytask.WithHeader("a", "\xff"))
	f(delaytask.ErrInvalidHeaders, delaytask.WithHeader("\xff", "a"))

	f(nil, delaytask.WithMaxLateness(0, delaytask.LateRun))
	f(delaytask.ErrInvalidOption, delaytask.WithMaxLateness(-1, delaytask.LateSkip))
	f(delaytask.ErrInvalidOption, delaytask.WithMaxLateness(math.MaxInt64, delaytask.LateSkip))
	f(delaytask.ErrInvalidOption, delaytask.WithMaxLateness(time.Second, 3))
	f(delaytask.ErrInvalidOption, nil)
	if _, err := NewSave("t", nil, time.Second, Limits{}, delaytask.WithTime(time.Now())); !errors.Is(err,
		delaytask.ErrInvalidOption) {
		t.Errorf("a time beside a delay: got %v", err)
	}
}

func TestTheFirstMistakeIsReported(t *testing.T) {
	t.Parallel()
	key, priority := delaytask.WithKey("s3:"), delaytask.WithPriority(101)
	for _, c := range []struct {
		tag, body string
		delay     time.Duration
		opts      []delaytask.Option
		want      error
	}{
		{"", "\xff", -1, []delaytask.Option{key, priority}, delaytask.ErrInvalidTag},
		{"t", "\xff", -1, []delaytask.Option{key, priority}, delaytask.ErrInvalidBody},
		{"t", "", -1, []delaytask.Option{key, priority}, delaytask.ErrInvalidDelay},
		{"t", "", 0, []delaytask.Option{key, priority}, delaytask.ErrInvalidKey},
	} {
		if _, err := NewSave(c.tag, c.body, c.delay, Limits{}, c.opts...); !errors.Is(err, c.want) {
			t.Errorf("got %v, want %v", err, c.want)
		}
	}
}

func TestOptionsAreStored(t *testing.T) {
	t.Parallel()
	headers := map[string]string{"a": "1", "b": "2"}
	got, err := NewSave("t", "body", time.Second, Limits{},
		delaytask.WithKey("the last one counts"), delaytask.WithTTR(time.Minute),
		delaytask.WithKey("k"), delaytask.WithID(7), delaytask.WithNoAttemptLimit(),
		delaytask.WithTTR(time.Microsecond), delaytask.WithPriority(-3),
		delaytask.WithHeaders(headers), delaytask.WithHeader("b", "3"),
		delaytask.WithMaxLateness(time.Minute+1, delaytask.LateSkip))
	if err != nil {
		t.Fatal(err)
	}
	headers["a"] = "changed later"
	want := delaytask.Save{
		Tag: "t", Body: []byte("body"), Delay: time.Second, Key: "k", ID: 7, Unlimited: true, TTR: time.Second,
		Priority: -3,
		Headers:  map[string]string{"a": "1", "b": "3"}, MaxLate: time.Minute + time.Millisecond,
		LatePolicy: delaytask.LateSkip,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func FuzzValidTag(f *testing.F) {
	for _, tag := range []string{
		"", "a", "order.close", "A-Z_a/z:0.9", "../../etc", // characters only: a tag is never a path
		strings.Repeat("x", 128), strings.Repeat("x", 129),
		"a b", "a ", " a", "a\x00", "a\r", "a\n", "a\t", "a\x7f", "\xff\xfe",
		"'; DROP TABLE x", "%", `\`, "a?b#c", "é", "e\u0301", "\u202e", "😀", "٣",
	} {
		f.Add(tag)
	}
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-:/"
	f.Fuzz(func(t *testing.T, tag string) {
		strange := strings.ContainsFunc(tag, func(r rune) bool { return !strings.ContainsRune(letters, r) })
		want := tag != "" && len(tag) <= 128 && !strange
		if got := delaytask.ValidTag(tag); got != want {
			t.Fatalf("ValidTag(%q) = %v, want %v", tag, got, want)
		}
	})
}

func FuzzKey(f *testing.F) {
	for _, key := range []string{
		"", "order 7", "s3:a", "S3:a", "\xff", "\xf0\x9f", strings.Repeat("é", 255), strings.Repeat("é", 256),
		strings.Repeat("k", 64<<10),
	} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		want := utf8.ValidString(key) && len([]rune(key)) <= 255 && !strings.HasPrefix(key, "s3:")
		err := delaytask.WithKey(key)(new(delaytask.Save))
		if (err == nil) != want || err != nil && !errors.Is(err, delaytask.ErrInvalidKey) {
			t.Fatalf("WithKey(%q) gave %v, want it valid: %v", key, err, want)
		}
	})
}

func FuzzNewSave(f *testing.F) {
	f.Add("t", []byte("{}"), int64(0), "k", int64(1), 1, int64(time.Second), 0, "h", "v", int64(0), byte(0))
	f.Add("", []byte{0xff}, int64(-1), "s3:", int64(-1), -1, int64(-1), 101, "\xff", "", int64(-1), byte(9))
	f.Add("t", []byte(nil), int64(math.MaxInt64), "", int64(5), 0, int64(1), -100, "", "\xff", int64(math.MaxInt64),
		byte(1))
	known := []error{
		delaytask.ErrInvalidTag, delaytask.ErrInvalidKey, delaytask.ErrInvalidBody, delaytask.ErrBodyTooLarge,
		delaytask.ErrInvalidDelay, delaytask.ErrDelayTooLong, delaytask.ErrInvalidID,
		delaytask.ErrInvalidTTR, delaytask.ErrInvalidMaxAttempts, delaytask.ErrInvalidPriority,
		delaytask.ErrInvalidHeaders, delaytask.ErrInvalidOption,
	}
	f.Fuzz(func(t *testing.T, tag string, body []byte, delay int64, key string, id int64, attempts int, ttr int64,
		priority int,
		header, value string, late int64, policy byte,
	) {
		s, err := NewSave(tag, body, time.Duration(delay), Limits{Body: 100}, delaytask.WithKey(key),
			delaytask.WithID(id),
			delaytask.WithMaxAttempts(attempts),
			delaytask.WithTTR(time.Duration(ttr)), delaytask.WithPriority(priority),
			delaytask.WithHeader(header, value),
			delaytask.WithMaxLateness(time.Duration(late), delaytask.LatePolicy(policy)))
		if err != nil {
			for _, k := range known {
				if errors.Is(err, k) {
					return
				}
			}
			t.Fatalf("an unknown error: %v", err)
		}
		whole := s.Delay%time.Millisecond == 0 && s.TTR%time.Millisecond == 0 && s.MaxLate%time.Millisecond == 0
		if !whole || s.Delay < time.Duration(delay) || s.MaxLate < time.Duration(late) || s.TTR < time.Duration(ttr) {
			t.Fatalf("a duration became shorter or is not whole milliseconds: %+v", s)
		}
		if !bytes.Equal(s.Body, body) || s.Body == nil || !utf8.Valid(s.Body) || len(s.Body) > 100 {
			t.Fatalf("body %q became %q", body, s.Body)
		}
		if s.Tag != tag || s.Key != key || s.ID != id || s.Headers[header] != value {
			t.Fatalf("got %+v", s)
		}
	})
}
