package access

import (
	"context"
	"fmt"
	"slices"
)

// Caller is the sender of a request and its rights. The zero value has none.
type Caller struct {
	name  string
	verbs []Verb
	tags  []string // patterns
}

// Everyone may do everything: the caller of a server that asks for no tokens. It has no name.
func Everyone() Caller { return Caller{verbs: []Verb{All}, tags: []string{anyTag}} }

// NewCaller returns a caller with these rights. Patterns of tags are as [ParseTags] takes them.
func NewCaller(name string, verbs []Verb, tags []string) Caller { return Caller{name, verbs, tags} }

// Verbs lists what the caller may do with tasks of its tags.
func (c Caller) Verbs() []Verb { return slices.Clone(c.verbs) }

// Tags lists the patterns of the caller's tags.
func (c Caller) Tags() []string { return slices.Clone(c.tags) }

// Name is the name of the caller's token.
func (c Caller) Name() string { return c.name }

// May reports whether the caller may do v with tasks of the tag. Only plain SQL makes tasks without a tag; they require
// the right for all tags.
func (c Caller) May(v Verb, tag string) bool { return c.has(v) && Match(c.tags, tag) }

// Allow returns an error that is [ErrForbidden] when the caller may not do v with tasks of the tag, or of some tag when
// that is "".
func (c Caller) Allow(v Verb, tag string) error {
	if c.May(v, tag) || tag == "" && c.SomeTag(v) {
		return nil
	}
	return Forbidden(v, tag)
}

// Forbidden is the error of a caller that may not do v with tasks of the tag, or of all tags when it is "".
func Forbidden(v Verb, tag string) error { return forbidden{v, tag} }

type forbidden struct {
	verb Verb
	tag  string
}

func (f forbidden) Error() string {
	if f.tag == "" {
		return fmt.Sprintf("this token may not %s", f.verb)
	}
	return fmt.Sprintf("this token may not %s tasks of tag %.128s", f.verb, f.tag)
}

func (forbidden) Is(target error) bool { return target == ErrForbidden }

// SomeTag reports whether the caller may do v with tasks of some tag at all.
func (c Caller) SomeTag(v Verb) bool { return c.has(v) && len(c.tags) > 0 }

// AnyTag reports whether the caller may do v with tasks of every tag.
func (c Caller) AnyTag(v Verb) bool { return c.has(v) && slices.Contains(c.tags, anyTag) }

// Only returns the caller with the rights that are among the verbs.
func (c Caller) Only(verbs ...Verb) Caller {
	c.verbs = slices.DeleteFunc(slices.Clone(verbs), func(v Verb) bool { return !c.has(v) })
	return c
}

func (c Caller) has(v Verb) bool {
	return slices.Contains(c.verbs, v) || slices.Contains(c.verbs, All) ||
		v == Observe && slices.Contains(c.verbs, Operate)
}

type contextKey struct{}

// carried is what a context carries.
type carried struct {
	caller Caller
	check  func(context.Context) (Caller, error) // finds the caller anew; nil: the caller stays
}

// WithCaller returns a context that carries the caller.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, contextKey{}, carried{caller: c})
}

// WithCheck returns a context that carries the caller that check finds, now and whenever [Again] asks. It returns the
// error of check.
func WithCheck(ctx context.Context, check func(context.Context) (Caller, error)) (context.Context, error) {
	c, err := check(ctx)
	if err != nil {
		return nil, err
	}
	return context.WithValue(ctx, contextKey{}, carried{c, check}), nil
}

// Again returns the context with the caller found anew: while a request waited, its token may have been revoked, or the
// first token made. It returns the error of the check when the caller has lost its rights.
func Again(ctx context.Context) (context.Context, error) {
	c, _ := ctx.Value(contextKey{}).(carried)
	if c.check == nil {
		return ctx, nil
	}
	return WithCheck(ctx, c.check)
}

// From returns the caller that the context carries, or one that may do nothing.
func From(ctx context.Context) Caller {
	c, _ := ctx.Value(contextKey{}).(carried)
	return c.caller
}
