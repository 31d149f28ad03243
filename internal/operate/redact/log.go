package redact

import (
	"context"
	"fmt"
	"log/slog"
)

// Handler masks the secrets in messages and values of a log. Handler returns next where the Redactor is nil.
func (r *Redactor) Handler(next slog.Handler) slog.Handler {
	if r == nil {
		return next
	}
	return handler{next, r}
}

type handler struct {
	slog.Handler
	redactor *Redactor
}

func (h handler) Handle(ctx context.Context, from slog.Record) error {
	masked := slog.NewRecord(from.Time, from.Level, h.redactor.Text("", from.Message), from.PC)
	from.Attrs(func(a slog.Attr) bool {
		masked.AddAttrs(h.attr(a))
		return true
	})
	return h.Handler.Handle(ctx, masked)
}

func (h handler) attr(a slog.Attr) slog.Attr {
	value := a.Value.Resolve()
	var text string
	switch value.Kind() {
	case slog.KindGroup:
		return slog.Attr{Key: a.Key, Value: slog.GroupValue(h.attrs(value.Group())...)}
	case slog.KindString:
		text = value.String()
	case slog.KindAny:
		text = fmt.Sprintf("%+v", value.Any()) // which recovers from a panic of a typed nil
	default:
		return a
	}
	if masked := h.redactor.Text("", text); masked != text {
		value = slog.StringValue(masked)
	}
	return slog.Attr{Key: a.Key, Value: value}
}

func (h handler) attrs(all []slog.Attr) []slog.Attr {
	masked := make([]slog.Attr, len(all))
	for i, a := range all {
		masked[i] = h.attr(a)
	}
	return masked
}

func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(h.attrs(attrs)), h.redactor}
}

func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.redactor}
}
