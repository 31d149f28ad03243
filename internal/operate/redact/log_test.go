package redact

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// lazy is what the log asks for its value.
type lazy struct{ text string }

func (l lazy) LogValue() slog.Value { return slog.StringValue(l.text) }

// nothing is an error that panics where it is nil.
type nothing struct{ text string }

func (n *nothing) Error() string { return n.text }

func TestALogHoldsNoSecrets(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	const text = "password=" + canary
	next := slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelInfo})
	log := slog.New(new(Redactor).Handler(next)).With("with", text).WithGroup("group")
	log.Debug("hidden")
	log.Info(text, "string", text, "error", errors.New(text), "lazy", lazy{text}, "any", []string{text}, "n", 7,
		slog.Group("inner", "string", text), "took", time.Second, "nil", (*nothing)(nil), "plain", errors.New("plain"))
	got := b.String()
	if strings.Contains(got, canary) || strings.Count(got, Mask) != 7 || strings.Contains(got, "hidden") ||
		!strings.Contains(got, "group.n=7") || !strings.Contains(got, "group.inner.string=") ||
		!strings.Contains(got, "group.took=1s") || !strings.Contains(got, "group.plain=plain") {
		t.Errorf("logged %s", got)
	}
	if (*Redactor)(nil).Handler(next) != slog.Handler(next) {
		t.Error("without a mask the log is another")
	}
}
