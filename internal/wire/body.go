package wire

import (
	"encoding/json"
	"unicode/utf8"
)

// Body is a task's body in an answer: in body when the stored text is JSON, and in body_text when it is any other text, which
// programs in Go may save. A task without a body has neither.
type Body struct {
	Body     json.RawMessage `json:"body,omitempty" doc:"The body, when it is JSON"`
	BodyText *string         `json:"body_text,omitempty" doc:"The body, when it is a text but not JSON"`
}

// BodyOf sorts a stored body into the field that fits.
func BodyOf(stored []byte) Body {
	switch {
	case len(stored) == 0:
		return Body{}
	case utf8.Valid(stored) && json.Valid(stored):
		return Body{Body: stored}
	default:
		text := string(stored)
		return Body{BodyText: &text}
	}
}

// Bytes is the body as it is stored.
func (b Body) Bytes() []byte {
	if b.BodyText != nil {
		return []byte(*b.BodyText)
	}
	return b.Body
}
