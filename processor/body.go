package processor

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// encodeBody copies: a caller whose context ended may reuse its slice while the statement that stores it is still under
// way.
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
