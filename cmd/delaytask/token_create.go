package main

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/server/access"
	"github.com/delaytask/delaytask/internal/sqlstore"
	"github.com/delaytask/delaytask/internal/wire"
)

type tokenFlags struct {
	tags, verbs []string
	expires     string
}

func (a *app) tokenCreateCommand() *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an access token and print it",
		Long: `Create a token and print it. It is shown this once: the database keeps only its hash. All servers know it
within 2 seconds; with server.auth: auto, one on loopback that was started while there was none asks for tokens from then on too.

A tag ends in * to stand for all tags that begin so; * alone stands for all. The verbs are
  save       save tasks
  save_http  save tasks of the built-in tag "http": whoever may, chooses where the server sends requests
  read       see tasks
  change     cancel, reschedule and retry tasks, and change their bodies
  work       pop tasks, and finish, fail, release and touch them
  operate    pause and resume tags, see nodes and statistics
  metrics    read /metrics; it takes the tags '*'
  register   register receivers: addresses that the server calls with tasks
  all        all of these, save_http and register included`,
		Example: `  delaytask token create shop --tags 'order.*' --verbs save,read
  delaytask token create mailer --tags mail.send,mail.receive --verbs work --expires 90d
  TOKEN=$(delaytask token create admin --tags '*' --verbs all)`,
		Args:              wanted(1, 1, "the name of the access token"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			verbs, err := access.ParseVerbs(f.verbs)
			if err != nil {
				return err
			}
			var life time.Duration
			if cmd.Flags().Changed("expires") {
				if life, err = parseDuration("expires", f.expires); err == nil && life <= 0 {
					err = misusedf("--expires %s: the token would never be good", f.expires)
				}
				if err != nil {
					return err
				}
			}
			secret, token, err := access.New(args[0], f.tags, verbs, 0)
			if err != nil {
				return err
			}
			return a.onTokens(cmd, changes, func(ctx context.Context, s *sqlstore.Store) error {
				return a.createToken(ctx, s, secret, token, life)
			})
		},
	}
	cmd.Flags().StringSliceVar(&f.tags, "tags", nil, "tags that it may use, such as mail.send,order.* or * for all")
	cmd.Flags().StringSliceVar(&f.verbs, "verbs", nil, "what it may do: "+strings.Join(verbNames(), ", "))
	cmd.Flags().StringVar(&f.expires, "expires", "", "refuse it after this long, such as 12h or 90d (default: never)")
	noFiles(cmd, "tags", "expires")
	values(cmd, "verbs", verbNames()...)
	a.jsonFlag(cmd)
	return cmd
}

func verbNames() []string {
	names := make([]string, 0, len(access.Verbs)+1)
	for _, v := range access.Verbs {
		names = append(names, string(v))
	}
	return append(names, string(access.All))
}

// createToken stores the token before it is shown, so that what is shown is good.
func (a *app) createToken(
	ctx context.Context, s *sqlstore.Store, secret string, token row.AccessToken, life time.Duration,
) error {
	if life > 0 {
		now, err := s.Now(ctx)
		if err != nil {
			return err
		}
		token.Expires = now.Time.Add(life)
	}
	if err := s.CreateToken(ctx, token); err != nil {
		return err
	}
	if a.json {
		return a.printJSON(struct {
			Token string `json:"token"`
			tokenView
		}{secret, viewOfToken(token, 0)})
	}
	a.note("Created %s, with the verbs %s for the tags %s, good until %s. This is the token; it is not shown again:\n",
		token.Name, strings.Join(token.Verbs, " "), strings.Join(token.Tags, " "), end(token))
	return a.printf("%s\n", secret)
}

func end(token row.AccessToken) string {
	if token.Expires.IsZero() {
		return "it is revoked"
	}
	return wire.Time(token.Expires.Std()).String()
}
