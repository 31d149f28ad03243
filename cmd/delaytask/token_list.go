package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/wire"
)

// tokenView is a token without what could stand for it.
type tokenView struct {
	Name    string    `json:"name"`
	Tags    []string  `json:"tags"`
	Verbs   []string  `json:"verbs"`
	Created wire.Time `json:"created,omitzero"`
	Expires wire.Time `json:"expires,omitzero"` // absent: never
	Expired bool      `json:"expired"`
}

func viewOfToken(t row.AccessToken, now row.Time) tokenView {
	return tokenView{
		Name: t.Name, Tags: append([]string{}, t.Tags...), Verbs: append([]string{}, t.Verbs...),
		Created: wire.Time(t.Created.Std()), Expires: wire.Time(t.Expires.Std()),
		Expired: !t.Expires.IsZero() && t.Expires <= now,
	}
}

func (a *app) tokenListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the tokens",
		Long:  "List the tokens, expired ones too: by name, and what each may do. The tokens themselves cannot be shown again.",
		Example: `  delaytask token list
  delaytask token list --json | jq -r '.items[] | select(.expired) | .name'`,
		Args: wanted(0, 0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onTokens(cmd, reads, func(ctx context.Context, s *store.Store) error {
				tokens, now, err := s.AccessTokens(ctx)
				if err != nil {
					return err
				}
				views := make([]tokenView, len(tokens)) // not nil: an empty list is [] in JSON
				for i, t := range tokens {
					views[i] = viewOfToken(t, now.Time)
				}
				if a.json {
					return a.printJSON(list[tokenView]{Items: views})
				}
				return a.printTokens(views)
			})
		},
	}
	a.jsonFlag(cmd)
	return cmd
}

func (a *app) printTokens(tokens []tokenView) error {
	if len(tokens) == 0 {
		return a.printf("There are no tokens.\n")
	}
	t := newTable(a.stdout, "NAME", "TAGS", "VERBS", "CREATED", "EXPIRES")
	for _, v := range tokens {
		expires := "never"
		switch {
		case v.Expired:
			expires = v.Expires.String() + " (expired)"
		case !v.Expires.IsZero():
			expires = v.Expires.String()
		}
		t.row(v.Name, strings.Join(v.Tags, " "), strings.Join(v.Verbs, " "), v.Created.String(), expires)
	}
	return t.flush()
}
