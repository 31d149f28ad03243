package processor

import (
	"fmt"
	"time"
	"unicode/utf8"
)

// Save is one task to be stored, checked and complete but for what only the scheduler knows: its defaults and its
// clock.
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
}

// Limits bounds what a save may carry.
type Limits struct {
	Body int // bytes; 0 means DefaultBodyLimit
}

// DefaultBodyLimit is how long a body may be where nothing else is configured: 1 MiB.
const DefaultBodyLimit = 1 << 20

// longestDelay stays clear of where a time.Duration ends (292 years), so that rounding and adding cannot wrap.
const longestDelay = 290 * 365 * 24 * time.Hour

// NewSave checks everything that can be known to be wrong before a database is asked: first the tag, then the body, the
// delay, and the options in their order.
//
// A body that is a []byte, a string or a json.RawMessage is stored as it is and need not be JSON; nil and nil slices
// are stored as an empty body; anything else is marshalled to JSON. What is stored is a copy. The delay is rounded up
// to a millisecond; 0 means due now.
//
// It returns [ErrInvalidTag], [ErrInvalidBody], [ErrBodyTooLarge], [ErrInvalidDelay], [ErrDelayTooLong] (a delay over
// 290 years) or what the option says.
func NewSave(tag string, body any, delay time.Duration, limits Limits, opts ...Option) (Save, error) {
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

// check looks at what only the options together can break.
func (s *Save) check() error {
	if !s.At.IsZero() && s.Delay != 0 {
		return fmt.Errorf("%w: a time and a delay contradict each other; pass the delay 0 with a time", ErrInvalidOption)
	}
	if s.Unlimited && s.MaxAttempts != 0 {
		return fmt.Errorf("%w: max attempts and no attempt limit contradict each other", ErrInvalidOption)
	}
	if app, has := s.Headers[AppHeader]; has {
		if err := checkApp(app); err != nil {
			return err
		}
		if s.Key != "" && len(app)+utf8.RuneCountInString(s.Key) > maxAppKey {
			return fmt.Errorf("%w: with its app it is too long: together they may have %d characters", ErrInvalidKey, maxAppKey)
		}
	}
	return checkHeaders(s.Headers)
}
