package access

import (
	"context"
	"slices"
)

// Caller is who calls. The zero value may do nothing.
type Caller struct {
	name  string
	verbs []Verb
	tags  []string // patterns
}

// Everyone may do everything: the caller of a server that asks for no tokens. It has no name.
func Everyone() Caller { return Caller{verbs: []Verb{All}, tags: []string{anyTag}} }

// Name is the name of the caller's token.
func (c Caller) Name() string { return c.name }

// May reports whether the caller may do v with tasks of the tag, or, when tag is "", with those of some tag at all.
func (c Caller) May(v Verb, tag string) bool {
	if !c.has(v) {
		return false
	}
	if tag == "" {
		return len(c.tags) > 0
	}
	return Match(c.tags, tag)
}

// AnyTag reports whether the caller may do v with tasks of every tag.
func (c Caller) AnyTag(v Verb) bool { return c.has(v) && slices.Contains(c.tags, anyTag) }

func (c Caller) has(v Verb) bool { return slices.Contains(c.verbs, v) || slices.Contains(c.verbs, All) }

type contextKey struct{}

// WithCaller returns a context that carries the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, contextKey{}, c)
}

// From returns the caller that the context carries, or one that may do nothing.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(contextKey{}).(Caller)
	return c
}
