package delaytask

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Save is one task to be stored. It is checked, and complete except for the scheduler's defaults and its clock.
type Save struct {
	Tag         string
	Body        []byte            // never nil
	Delay       time.Duration     // whole milliseconds; 0 when At is set
	At          time.Time         // UTC; zero: now + Delay
	Key         string            // "": none
	ID          int64             // 0: a fresh one
	MaxAttempts int               // 0: the default, unless Unlimited
	Unlimited   bool              // no limit of attempts; MaxAttempts is 0 then
	TTR         time.Duration     // whole milliseconds; 0: the default
	Priority    int               // larger first among what is ready
	Headers     map[string]string // nil: none
	MaxLate     time.Duration     // whole milliseconds; 0: no limit
	LatePolicy  LatePolicy        // what happens over MaxLate
	OnConflict  ConflictMode      // "": KeepExisting
	MaxWait     time.Duration     // whole milliseconds; 0: no limit

	Schedule *ScheduleSettings // set by options that are for schedules alone
}

// MaxDelay is the longest delay of a task: 290 years. It is below the largest time.Duration (292 years), so that
// rounding and adding cannot overflow.
const MaxDelay = 290 * 365 * 24 * time.Hour

// Check returns an error for options that contradict each other. It returns [ErrInvalidOption],
// [ErrInvalidKey], or [ErrInvalidHeaders].
func (s *Save) Check() error {
	if !s.At.IsZero() && s.Delay != 0 {
		return fmt.Errorf("%w: a time and a delay contradict each other; pass the delay 0 with a time",
			ErrInvalidOption)
	}
	if s.Unlimited && s.MaxAttempts != 0 {
		return fmt.Errorf("%w: max attempts and no attempt limit contradict each other", ErrInvalidOption)
	}
	if s.OnConflict != "" && s.Key == "" {
		return fmt.Errorf("%w: on conflict %s needs a key: give the task one", ErrInvalidOption, s.OnConflict)
	}
	if s.MaxWait != 0 && s.OnConflict == "" {
		return fmt.Errorf("%w: a max wait is for saves that reschedule the existing task: say how, on conflict",
			ErrInvalidOption)
	}
	if app, has := s.Headers[AppHeader]; has {
		if err := checkApp(app); err != nil {
			return err
		}
		if s.Key != "" && len(app)+utf8.RuneCountInString(s.Key) > maxAppKey {
			return fmt.Errorf("%w: with its app it is too long: together they may have %d characters", ErrInvalidKey,
				maxAppKey)
		}
	}
	return checkHeaders(s.Headers)
}

// Item is one task of a bulk save, with the arguments of SaveDelayTask.
type Item struct {
	Tag     string
	Body    any
	Delay   time.Duration
	Options []Option
}

// SaveResult is what became of one item of a bulk save.
type SaveResult struct {
	ID  int64 // of the task that is stored or carries the key; 0 with errors except ErrDuplicate and ErrNotPending
	Err error // as SaveDelayTask returns it, or ErrChunkRefused

	// Rescheduled says that an unfinished task carries the key, and has got the time of this item: see WithOnConflict.
	Rescheduled bool

	// Chunk is the number of its chunk in the bulk save, from 0: tasks with the same number are stored together or not
	// at all.
	Chunk int
}

// MaxTTR is the longest lease of a task.
const MaxTTR = 24 * time.Hour

const (
	maxTag      = 128 // bytes
	maxKey      = 255 // characters
	maxAttempts = 1_000_000
	maxPriority = 100
	maxHeaders  = 16 << 10 // bytes as JSON
	minTTR      = time.Second

	// Stored keys begin with reservedKeys when the task's id is unique over all tags, with appKeys when the task
	// belongs to an application, and with scheduleKeys when it is the run of a schedule. A caller's key must never meet
	// one.
	reservedKeys = "s3:"
	appKeys      = "delaytask-app:"
	scheduleKeys = "schedule:"
	maxAppKey    = maxKey - len(appKeys) - len("|") // characters of an app and a key
)

var reserved = []string{reservedKeys, appKeys, scheduleKeys}

var (
	earliest = time.Date(1970, 1, 2, 0, 0, 0, 0, time.UTC)
	// latest is the last microsecond: whatever comes after it would be rounded up into the year 9999.
	latest = time.Date(9998, 12, 31, 23, 59, 59, 999_999_000, time.UTC)
)

// ValidTag reports whether s can be a tag: 1–128 bytes of A–Z a–z 0–9 . _ - : /
func ValidTag(s string) bool {
	if len(s) < 1 || len(s) > maxTag {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		digit := '0' <= c && c <= '9'
		if !letter && !digit && strings.IndexByte("._-:/", c) < 0 {
			return false
		}
	}
	return true
}

func checkKey(key string) error {
	// Bytes first: counting the characters of a key of megabytes is wasted work.
	if len(key) > maxKey*utf8.UTFMax || utf8.RuneCountInString(key) > maxKey {
		return fmt.Errorf("%w: it is too long", ErrInvalidKey)
	}
	if !utf8.ValidString(key) {
		return fmt.Errorf("%w: it is not valid UTF-8", ErrInvalidKey)
	}
	if slices.ContainsFunc(reserved, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
		return fmt.Errorf("%w: the beginning is reserved", ErrInvalidKey)
	}
	return nil
}

func checkTime(t time.Time) error {
	switch {
	case t.IsZero():
		return fmt.Errorf("%w: it is not set", ErrInvalidTime)
	case t.Before(earliest):
		return fmt.Errorf("%w: got %v", ErrInvalidTime, t)
	case t.After(latest):
		return fmt.Errorf("%w: got %v", ErrDelayTooLong, t)
	}
	return nil
}

func checkTTR(d time.Duration) (time.Duration, error) {
	if d < 0 || d > MaxTTR {
		return 0, fmt.Errorf("%w: got %v", ErrInvalidTTR, d)
	}
	if d == 0 {
		return 0, nil
	}
	return roundUp(max(d, minTTR)), nil
}

func checkMaxAttempts(n int) error {
	if n < 0 || n > maxAttempts {
		return fmt.Errorf("%w: got %d", ErrInvalidMaxAttempts, n)
	}
	return nil
}

func checkHeaders(headers map[string]string) error {
	for name, value := range headers {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return fmt.Errorf("%w: header %q is not valid UTF-8", ErrInvalidHeaders, name)
		}
	}
	encoded, err := json.Marshal(headers)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrInvalidHeaders, err)
	}
	if len(encoded) > maxHeaders {
		return fmt.Errorf("%w: they take %d bytes", ErrInvalidHeaders, len(encoded))
	}
	return nil
}

// roundUp makes whole milliseconds, which is what the row holds.
func roundUp(d time.Duration) time.Duration {
	if rest := d % time.Millisecond; rest > 0 {
		return d - rest + time.Millisecond
	}
	return d
}
