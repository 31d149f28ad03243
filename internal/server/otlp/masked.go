package otlp

import (
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/trace"
)

// masked is a span without the secrets of its texts.
type masked struct {
	trace.ReadOnlySpan
	mask func(text string) string
}

func (s masked) Status() trace.Status {
	status := s.ReadOnlySpan.Status()
	status.Description = s.mask(status.Description)
	return status
}

func (s masked) Attributes() []attribute.KeyValue { return s.attributes(s.ReadOnlySpan.Attributes()) }

func (s masked) Events() []trace.Event {
	events := slices.Clone(s.ReadOnlySpan.Events())
	for i := range events {
		events[i].Attributes = s.attributes(events[i].Attributes)
	}
	return events
}

func (s masked) attributes(all []attribute.KeyValue) []attribute.KeyValue {
	all = slices.Clone(all)
	for i, a := range all {
		if a.Value.Type() == attribute.STRING {
			all[i] = a.Key.String(s.mask(a.Value.AsString()))
		}
	}
	return all
}
