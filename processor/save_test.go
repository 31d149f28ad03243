package processor

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
	f(every, 0, ErrInvalidBody)
	f("\xff", 0, ErrInvalidBody)
	f(json.RawMessage("\xff"), 0, ErrInvalidBody)
	f(make(chan int), 0, ErrInvalidBody)
	f(math.NaN(), 0, ErrInvalidBody)
	f(cycle, 0, ErrInvalidBody)
	f("abc", 3, nil)
	f("abcd", 3, ErrBodyTooLarge)
	f([]byte("abcd"), 3, ErrBodyTooLarge)
	f([]string{"a"}, 5, nil)
	f([]string{"ab"}, 5, ErrBodyTooLarge)
	f(make([]byte, DefaultBodyLimit), 0, nil)
	f(make([]byte, DefaultBodyLimit+1), 0, ErrBodyTooLarge)
	f(make([]byte, 20<<20), 0, ErrBodyTooLarge)
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
	f(longestDelay, longestDelay, nil)
	f(longestDelay+1, 0, ErrDelayTooLong)
	f(math.MaxInt64, 0, ErrDelayTooLong)
	f(-1, 0, ErrInvalidDelay)
	f(math.MinInt64, 0, ErrInvalidDelay)
}

func TestTimeKeepsItsInstant(t *testing.T) {
	t.Parallel()
	berlin := time.FixedZone("CEST", 2*60*60)
	at := time.Date(2026, 10, 25, 2, 30, 0, 1, berlin)
	s, err := NewSave("t", nil, 0, Limits{}, WithTime(at))
	if err != nil || !s.At.Equal(at) || s.At.Location() != time.UTC {
		t.Errorf("got %v, %v, want the instant %v in UTC", s.At, err, at)
	}
	now := time.Now()
	s, err = NewSave("t", nil, 0, Limits{}, WithTime(now))
	if err != nil || s.At != now.Round(0).UTC() {
		t.Errorf("the monotonic reading was kept: %v, %v", s.At, err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	f := func(want error, opts ...Option) {
		t.Helper()
		s, err := NewSave("t", nil, 0, Limits{}, opts...)
		if !errors.Is(err, want) || (want == nil) != (err == nil) {
			t.Errorf("got %+v, %v, want %v", s, err, want)
		}
	}
	past := time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC)
	future := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	f(nil, WithTime(past))
	f(nil, WithTime(future.Add(-time.Microsecond)))
	f(ErrInvalidTime, WithTime(time.Time{}))
	f(ErrInvalidTime, WithTime(time.Unix(0, 0)))
	f(ErrInvalidTime, WithTime(past.Add(-1)))
	f(ErrDelayTooLong, WithTime(future.Add(-1))) // would be rounded up into the year 9999
	f(ErrDelayTooLong, WithTime(future))

	f(nil, WithKey("S3:a"))
	f(ErrInvalidKey, WithKey("s3:a"))

	f(nil, WithID(1))
	f(ErrInvalidID, WithID(0))
	f(ErrInvalidID, WithID(-1))

	f(nil, WithMaxAttempts(0))
	f(nil, WithMaxAttempts(1_000_000))
	f(ErrInvalidMaxAttempts, WithMaxAttempts(-1))
	f(ErrInvalidMaxAttempts, WithMaxAttempts(math.MaxInt32))
	f(ErrInvalidOption, WithMaxAttempts(3), WithNoAttemptLimit())

	f(nil, WithTTR(0))
	f(nil, WithTTR(24*time.Hour))
	f(ErrInvalidTTR, WithTTR(-1))
	f(ErrInvalidTTR, WithTTR(24*time.Hour+1))

	f(nil, WithPriority(-100))
	f(nil, WithPriority(100))
	f(ErrInvalidPriority, WithPriority(-101))
	f(ErrInvalidPriority, WithPriority(math.MaxInt))

	f(nil, WithHeaders(nil))
	f(nil, WithHeader("a", strings.Repeat("x", 16<<10-len(`{"a":""}`))))
	f(ErrInvalidHeaders, WithHeader("a", strings.Repeat("x", 16<<10-len(`{"a":""}`)+1)))
	f(ErrInvalidHeaders, WithHeader("a", "\xff"))
	f(ErrInvalidHeaders, WithHeader("\xff", "a"))

	f(nil, WithMaxLateness(0, LateRun))
	f(ErrInvalidOption, WithMaxLateness(-1, LateSkip))
	f(ErrInvalidOption, WithMaxLateness(math.MaxInt64, LateSkip))
	f(ErrInvalidOption, WithMaxLateness(time.Second, 3))
	f(ErrInvalidOption, nil)
	if _, err := NewSave("t", nil, time.Second, Limits{}, WithTime(time.Now())); !errors.Is(err, ErrInvalidOption) {
		t.Errorf("a time beside a delay: got %v", err)
	}
}

func TestTheFirstMistakeIsReported(t *testing.T) {
	t.Parallel()
	key, priority := WithKey("s3:"), WithPriority(101)
	for _, c := range []struct {
		tag, body string
		delay     time.Duration
		opts      []Option
		want      error
	}{
		{"", "\xff", -1, []Option{key, priority}, ErrInvalidTag},
		{"t", "\xff", -1, []Option{key, priority}, ErrInvalidBody},
		{"t", "", -1, []Option{key, priority}, ErrInvalidDelay},
		{"t", "", 0, []Option{key, priority}, ErrInvalidKey},
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
		WithKey("the last one counts"), WithTTR(time.Minute),
		WithKey("k"), WithID(7), WithNoAttemptLimit(), WithTTR(time.Microsecond), WithPriority(-3),
		WithHeaders(headers), WithHeader("b", "3"), WithMaxLateness(time.Minute+1, LateSkip))
	mustOK(t, err)
	headers["a"] = "changed later"
	want := Save{
		Tag: "t", Body: []byte("body"), Delay: time.Second, Key: "k", ID: 7, Unlimited: true, TTR: time.Second,
		Priority: -3,
		Headers:  map[string]string{"a": "1", "b": "3"}, MaxLate: time.Minute + time.Millisecond, LatePolicy: LateSkip,
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
		if got := ValidTag(tag); got != want {
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
		if err := checkKey(key); (err == nil) != want || err != nil && !errors.Is(err, ErrInvalidKey) {
			t.Fatalf("checkKey(%q) = %v, want it valid: %v", key, err, want)
		}
	})
}

func FuzzNewSave(f *testing.F) {
	f.Add("t", []byte("{}"), int64(0), "k", int64(1), 1, int64(time.Second), 0, "h", "v", int64(0), byte(0))
	f.Add("", []byte{0xff}, int64(-1), "s3:", int64(-1), -1, int64(-1), 101, "\xff", "", int64(-1), byte(9))
	f.Add("t", []byte(nil), int64(math.MaxInt64), "", int64(5), 0, int64(1), -100, "", "\xff", int64(math.MaxInt64),
		byte(1))
	known := []error{
		ErrInvalidTag, ErrInvalidKey, ErrInvalidBody, ErrBodyTooLarge, ErrInvalidDelay, ErrDelayTooLong, ErrInvalidID,
		ErrInvalidTTR, ErrInvalidMaxAttempts, ErrInvalidPriority, ErrInvalidHeaders, ErrInvalidOption,
	}
	f.Fuzz(func(t *testing.T, tag string, body []byte, delay int64, key string, id int64, attempts int, ttr int64,
		priority int,
		header, value string, late int64, policy byte,
	) {
		s, err := NewSave(tag, body, time.Duration(delay), Limits{Body: 100}, WithKey(key), WithID(id),
			WithMaxAttempts(attempts),
			WithTTR(time.Duration(ttr)), WithPriority(priority), WithHeader(header, value),
			WithMaxLateness(time.Duration(late), LatePolicy(policy)))
		if err != nil {
			for _, k := range known {
				if errors.Is(err, k) {
					return
				}
			}
			t.Fatalf("an error that is none of ours: %v", err)
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
