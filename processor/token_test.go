package processor

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestParseToken(t *testing.T) {
	t.Parallel()
	largest := Token{ID: math.MaxInt64, Version: math.MaxInt64}
	for s, want := range map[string]Token{
		"1.1": {ID: 1, Version: 1}, "794354201396589397.3": {ID: 794354201396589397, Version: 3}, largest.String(): largest,
	} {
		if got, err := ParseToken(s); err != nil || got != want || got.String() != s {
			t.Errorf("%q: got %v, %v", s, got, err)
		}
	}
	for _, s := range []string{
		"", ".", "1", "1.", ".1", "0.1", "1.0", "01.1", "1.01", "+1.1", "1.+1", "-1.1", "1.-1", " 1.1", "1.1 ", "1 .1", "1.1.1",
		"1,1",
		"1.1\n", "1_0.1", "0x1.1", "1e3.1", "a.b", "9223372036854775808.1", "1.9223372036854775808",
		"١.١", "1.1\x00", strings.Repeat("9", 1<<16),
	} {
		if got, err := ParseToken(s); !errors.Is(err, ErrInvalidToken) || got != (Token{}) || len(err.Error()) > 500 {
			t.Errorf("%.50q: got %v, %v", s, got, err)
		}
	}
}

func FuzzParseToken(f *testing.F) {
	for _, s := range []string{"", "1.1", "7.0", "-1.2", "9223372036854775807.9223372036854775807", "9223372036854775808.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		token, err := ParseToken(s)
		if err != nil {
			if !errors.Is(err, ErrInvalidToken) || token != (Token{}) {
				t.Fatalf("%q: %v, %v", s, token, err)
			}
			return
		}
		if token.ID <= 0 || token.Version <= 0 || token.String() != s {
			t.Fatalf("%q is read as %v", s, token)
		}
	})
}
