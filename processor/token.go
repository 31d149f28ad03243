package processor

import (
	"fmt"
	"strconv"
	"strings"
)

// Token is the lease token: it ends the task that was handed out with it, from any process. Once the lease has passed
// on, whatever is done with it returns [ErrLeaseLost] and changes nothing.
type Token struct{ ID, Version int64 }

// String returns "<id>.<version>", which [ParseToken] reads.
func (t Token) String() string { return fmt.Sprintf("%d.%d", t.ID, t.Version) }

// Check returns [ErrInvalidToken] for a token that cannot be one.
func (t Token) Check() error {
	if t.ID <= 0 || t.Version <= 0 {
		return fmt.Errorf("%w: got %v", ErrInvalidToken, t)
	}
	return nil
}

// ParseToken reads what [Token.String] has written, and nothing else. It returns [ErrInvalidToken].
func ParseToken(s string) (Token, error) {
	id, version, _ := strings.Cut(s, ".")
	t := Token{ID: positive(id), Version: positive(version)}
	if t.Check() != nil {
		return Token{}, fmt.Errorf("%w: got %.60q", ErrInvalidToken, s)
	}
	return t, nil
}

// positive returns the number, 0 when it is none or not written in the one way that there is.
func positive(digits string) int64 {
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != digits {
		return 0
	}
	return n
}
