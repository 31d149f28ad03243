package row

import "context"

type actorKey struct{}

// WithActor returns a context of what this person, or the program of this access token, does.
func WithActor(ctx context.Context, who string) context.Context {
	return context.WithValue(ctx, actorKey{}, who)
}

// Actor returns who it is, "" where that is not known.
func Actor(ctx context.Context) string {
	who, _ := ctx.Value(actorKey{}).(string)
	return who
}
