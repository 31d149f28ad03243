package request

import (
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/delaytask/delaytask"
)

// Limits bounds what a save may carry.
type Limits struct {
	Body int // bytes; 0 means DefaultBodyLimit
}

// DefaultBodyLimit is how long a body may be where nothing else is configured: 1 MiB.
const DefaultBodyLimit = 1 << 20

// NewSave checks all that can be checked without a database: first the tag, then the body, the delay, and the options
// in their order.
//
// A body that is a []byte, a string or a json.RawMessage is stored as it is and need not be JSON; nil and nil slices
// are stored as an empty body; anything else is marshalled to JSON. What is stored is a copy. The delay is rounded up
// to a millisecond; 0 means due now.
//
// It returns [delaytask.ErrInvalidTag], [delaytask.ErrInvalidBody], [delaytask.ErrBodyTooLarge],
// [delaytask.ErrInvalidDelay], [delaytask.ErrDelayTooLong] (a delay over 290 years) or what the option says.
func NewSave(
	tag string, body any, delay time.Duration, limits Limits, opts ...delaytask.Option,
) (delaytask.Save, error) {
	s, err := newSave(tag, body, delay, limits, opts)
	if err == nil && s.Schedule != nil {
		err = fmt.Errorf("%w: an option is for schedules, and this saves a single task", delaytask.ErrInvalidOption)
	}
	if err != nil {
		return delaytask.Save{}, err
	}
	return s, nil
}

func newSave(
	tag string, body any, delay time.Duration, limits Limits, opts []delaytask.Option,
) (delaytask.Save, error) {
	if !delaytask.ValidTag(tag) {
		return delaytask.Save{}, fmt.Errorf("%w: got %.140q", delaytask.ErrInvalidTag, tag)
	}
	encoded, err := encodeBody(body, limits.Body)
	if err != nil {
		return delaytask.Save{}, err
	}
	delay, err = checkDelay(delay)
	if err != nil {
		return delaytask.Save{}, err
	}
	s := delaytask.Save{Tag: tag, Body: encoded, Delay: delay}
	if err := apply(&s, opts); err != nil {
		return delaytask.Save{}, err
	}
	if err := s.Check(); err != nil {
		return delaytask.Save{}, err
	}
	return s, nil
}

// MaxItems is how many tasks one bulk save takes.
const MaxItems = 10_000

// Encoder is a body that encodes itself, such as the body of a kind with a codec.
type Encoder interface {
	EncodeBody() ([]byte, error)
}

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
	case Encoder:
		encoded, err := b.EncodeBody()
		if err != nil {
			return nil, fmt.Errorf("%w: %w", delaytask.ErrInvalidBody, err)
		}
		return copyText(encoded, limit)
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", delaytask.ErrInvalidBody, err)
	}
	return encoded, checkLength(len(encoded), limit)
}

func copyText[T ~string | ~[]byte](text T, limit int) ([]byte, error) {
	if err := checkLength(len(text), limit); err != nil {
		return nil, err
	}
	body := append([]byte{}, text...)
	if !utf8.Valid(body) {
		return nil, fmt.Errorf("%w: it is not valid UTF-8", delaytask.ErrInvalidBody)
	}
	return body, nil
}

func checkLength(n, limit int) error {
	if limit <= 0 {
		limit = DefaultBodyLimit
	}
	if n > limit {
		return fmt.Errorf("%w: %d bytes, the limit is %d", delaytask.ErrBodyTooLarge, n, limit)
	}
	return nil
}

func checkDelay(d time.Duration) (time.Duration, error) {
	if d < 0 {
		return 0, fmt.Errorf("%w: got %v", delaytask.ErrInvalidDelay, d)
	}
	if d > delaytask.MaxDelay {
		return 0, fmt.Errorf("%w: got %v", delaytask.ErrDelayTooLong, d)
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond), nil
}

// apply puts options into what they set. It returns [delaytask.ErrInvalidOption] for a nil option, or what an option
// says.
func apply[T any, O ~func(*T) error](to *T, opts []O) error {
	for _, opt := range opts {
		if opt == nil {
			return fmt.Errorf("%w: it is nil", delaytask.ErrInvalidOption)
		}
		if err := opt(to); err != nil {
			return err
		}
	}
	return nil
}
