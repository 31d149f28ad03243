package operate

import (
	"context"
	"slices"
	"strings"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/row"
)

// Tokens stores access tokens.
type Tokens interface {
	AccessTokens(ctx context.Context) ([]row.AccessToken, row.Reading, error)
	CreateToken(ctx context.Context, token row.AccessToken) (there bool, err error)
	DeleteToken(ctx context.Context, name string) error
	EndBootstrap(ctx context.Context) error
}

// CreateToken stores an access token. It takes all verbs for all tags.
func (o *Operator) CreateToken(ctx context.Context, by By, token row.AccessToken) error {
	detail := "verbs=" + strings.Join(token.Verbs, ",") + " tags=" + strings.Join(token.Tags, ",")
	return o.onToken(ctx, by, audit.CreateToken, token.Name, detail, func(ctx context.Context) error {
		there, err := o.Tokens.CreateToken(ctx, token)
		if bootstrap, _ := token.Bootstrap(); there && bootstrap && err == nil {
			return audit.ErrUnchanged // another process was first
		}
		return err
	})
}

// Bootstrap stores a bootstrap token unless it is there, and reports whether it has ended. It takes all verbs for all
// tags.
func (o *Operator) Bootstrap(ctx context.Context, by By, token row.AccessToken) (ended bool, err error) {
	tokens, _, err := o.Tokens.AccessTokens(ctx)
	if err != nil {
		return false, err
	}
	same := func(t row.AccessToken) bool { return t.Hash == token.Hash }
	if !slices.ContainsFunc(tokens, same) {
		if err := o.CreateToken(ctx, by, token); err != nil {
			return false, err
		}
		// A whole token that was made meanwhile did not find this one.
		if tokens, _, err = o.Tokens.AccessTokens(ctx); err != nil {
			return false, err
		}
	}
	if slices.ContainsFunc(tokens, func(t row.AccessToken) bool { return t.Whole() }) {
		return true, o.Tokens.EndBootstrap(ctx)
	}
	return slices.ContainsFunc(tokens, func(t row.AccessToken) bool {
		_, ended := t.Bootstrap()
		return ended && same(t)
	}), nil
}

// RevokeToken deletes an access token; of a bootstrap token it keeps the hash, which is refused for ever. It takes all
// verbs for all tags.
func (o *Operator) RevokeToken(ctx context.Context, by By, name string) error {
	return o.onToken(ctx, by, audit.RevokeToken, name, "", func(ctx context.Context) error {
		return o.Tokens.DeleteToken(ctx, name)
	})
}

func (o *Operator) onToken(
	ctx context.Context, by By, action audit.Action, name, detail string, do func(context.Context) error,
) error {
	return o.do(ctx, by, act{
		action: action, needs: func(string) []access.Verb { return []access.Verb{access.All} }, detail: detail,
		find: func(context.Context) (target, error) { return target{name: name}, nil },
		do:   func(ctx context.Context, _ target) (int64, error) { return 0, do(ctx) },
	})
}
