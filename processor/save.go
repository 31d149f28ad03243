package processor

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

// Limits bounds what a save may carry.
type Limits struct {
	Body int // bytes; 0 means DefaultBodyLimit
}

// DefaultBodyLimit is how long a body may be where nothing else is configured: 1 MiB.
const DefaultBodyLimit = 1 << 20

// longestDelay is below the largest time.Duration (292 years), so that rounding and adding cannot overflow.
const longestDelay = 290 * 365 * 24 * time.Hour

// NewSave checks all that can be checked without a database: first the tag, then the body, the delay, and the options
// in their order.
//
// A body that is a []byte, a string or a json.RawMessage is stored as it is and need not be JSON; nil and nil slices
// are stored as an empty body; anything else is marshalled to JSON. What is stored is a copy. The delay is rounded up
// to a millisecond; 0 means due now.
//
// It returns [ErrInvalidTag], [ErrInvalidBody], [ErrBodyTooLarge], [ErrInvalidDelay], [ErrDelayTooLong] (a delay over
// 290 years) or what the option says.
func NewSave(tag string, body any, delay time.Duration, limits Limits, opts ...Option) (Save, error) {
	s, err := newSave(tag, body, delay, limits, opts)
	if err == nil && s.Schedule != nil {
		err = fmt.Errorf("%w: an option is for schedules, and this saves a single task", ErrInvalidOption)
	}
	if err != nil {
		return Save{}, err
	}
	return s, nil
}

func newSave(tag string, body any, delay time.Duration, limits Limits, opts []Option) (Save, error) {
	if !ValidTag(tag) {
		return Save{}, fmt.Errorf("%w: got %.140q", ErrInvalidTag, tag)
	}
	encoded, err := encodeBody(body, limits.Body)
	if err != nil {
		return Save{}, err
	}
	delay, err = checkDelay(delay)
	if err != nil {
		return Save{}, err
	}
	s := Save{Tag: tag, Body: encoded, Delay: delay}
	for _, opt := range opts {
		if opt == nil {
			return Save{}, fmt.Errorf("%w: it is nil", ErrInvalidOption)
		}
		if err := opt(&s); err != nil {
			return Save{}, err
		}
	}
	if err := s.check(); err != nil {
		return Save{}, err
	}
	return s, nil
}

// check finds contradictions between options.
func (s *Save) check() error {
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

// MaxItems is how many tasks one bulk save takes.
const MaxItems = 10_000

// encodeBody copies the body. A caller whose context has ended may reuse its slice while a statement still stores it.
func encodeBody(body any, limit int) ([]byte, error) {
	switch b := body.(type) {
	case nil:
		return []byte{}, nil
	case string:
		return copyText(b, limit)
	case []byte:
		return copyText(b, limit)
	case json.RawMessage:
		return copyText(b, limit)
	case encodedBody:
		encoded, err := b.codec.Encode(b.body)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalidBody, err)
		}
		return copyText(encoded, limit)
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidBody, err)
	}
	return encoded, checkLength(len(encoded), limit)
}

func copyText[T ~string | ~[]byte](text T, limit int) ([]byte, error) {
	if err := checkLength(len(text), limit); err != nil {
		return nil, err
	}
	body := append([]byte{}, text...)
	if !utf8.Valid(body) {
		return nil, fmt.Errorf("%w: it is not valid UTF-8", ErrInvalidBody)
	}
	return body, nil
}

func checkLength(n, limit int) error {
	if limit <= 0 {
		limit = DefaultBodyLimit
	}
	if n > limit {
		return fmt.Errorf("%w: %d bytes, the limit is %d", ErrBodyTooLarge, n, limit)
	}
	return nil
}

const (
	maxTag      = 128 // bytes
	maxKey      = 255 // characters
	maxAttempts = 1_000_000
	maxPriority = 100
	maxHeaders  = 16 << 10 // bytes as JSON
	minTTR      = time.Second
	maxTTR      = 24 * time.Hour

	// reservedKeys begin the keys of tasks whose ids are unique over all tags, and appKeys those of tasks that belong
	// to an application, as they are stored. Those of scheduleKeys belong to runs of schedules. A caller's key must
	// never meet one.
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

func checkDelay(d time.Duration) (time.Duration, error) {
	if d < 0 {
		return 0, fmt.Errorf("%w: got %v", ErrInvalidDelay, d)
	}
	if d > longestDelay {
		return 0, fmt.Errorf("%w: got %v", ErrDelayTooLong, d)
	}
	return roundUp(d), nil
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
	if d < 0 || d > maxTTR {
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
