package operate

import (
	"context"
	"strings"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/row"
)

// Tokens stores access tokens.
type Tokens interface {
	CreateToken(ctx context.Context, token row.AccessToken) error
	DeleteToken(ctx context.Context, name string) error
}

// CreateToken stores an access token. It takes all verbs for all tags.
func (o *Operator) CreateToken(ctx context.Context, by By, token row.AccessToken) error {
	detail := "verbs=" + strings.Join(token.Verbs, ",") + " tags=" + strings.Join(token.Tags, ",")
	return o.onToken(ctx, by, audit.CreateToken, token.Name, detail, func(ctx context.Context) error {
		return o.Tokens.CreateToken(ctx, token)
	})
}

// RevokeToken deletes an access token. It takes all verbs for all tags.
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
