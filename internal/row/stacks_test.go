package row

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// traced prints as the errors of pkg/errors do.
type traced struct {
	text string
	form func() string
}

func (t traced) Error() string { return t.text }

func (t traced) Format(s fmt.State, _ rune) {
	if s.Flag('+') {
		_, _ = fmt.Fprint(s, t.form())
		return
	}
	_, _ = fmt.Fprint(s, t.text)
}

func TestStacksAreFoundWhereverTheErrorIs(t *testing.T) {
	t.Parallel()
	of := func(text string) error { return traced{text, func() string { return text + "\nmain.f\n\tf.go:1" }} }
	plain, silent := errors.New("plain"), traced{"silent", func() string { return "silent" }}
	broken := traced{"broken", func() string { panic("a bug") }}
	for _, c := range []struct {
		name  string
		err   error
		limit int
		want  string
	}{
		{"nil", nil, 99, ""},
		{"none", fmt.Errorf("a: %w", errors.Join(plain, silent)), 99, ""},
		{"bare", of("x"), 99, "\n\nx\nmain.f\n\tf.go:1"},
		{"wrapped", fmt.Errorf("a: %w", of("x")), 99, "\n\nx\nmain.f\n\tf.go:1"},
		{"joined", errors.Join(plain, of("x"), of("y")), 99, "\n\nx\nmain.f\n\tf.go:1\n\ny\nmain.f\n\tf.go:1"},
		{"over the limit", errors.Join(of("x"), of("y")), 9, "\n\nx\nmain.f\n\tf.go:1"},
	} {
		if got := Stacks(c.err, c.limit); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if got := Stacks(broken, 99); !strings.Contains(got, "PANIC") {
		t.Errorf("of a Format method that panics: %q", got)
	}
}
