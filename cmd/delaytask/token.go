package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/sqlstore"
	"github.com/delaytask/delaytask/internal/wire"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Say who may call the HTTP service, and what each may do",
		Long: `Say who may call the HTTP service, and what each may do. A caller sends its access token in the header
"Authorization: Bearer TOKEN". The tokens are kept in the database, each only as a hash.`,
		Example: `  delaytask token create shop --tags 'order.*' --verbs save,read
  delaytask token list
  delaytask token revoke shop`,
	}
	cmd.AddCommand(a.tokenCreateCommand(), a.tokenListCommand(), a.tokenRevokeCommand())
	return cmd
}

// onTokens calls f with the store of a database that has the tables of the service.
func (a *app) onTokens(cmd *cobra.Command, u use, f func(context.Context, *sqlstore.Store) error) error {
	return a.onDatabase(cmd, u, func(ctx context.Context, db *sqlx.DB, kind sqlstore.Kind) error {
		s := sqlstore.New(db, kind)
		defer func() { _ = s.Close(context.WithoutCancel(ctx)) }() // closes idle connections
		check := s.CheckService
		if u == reads {
			check = s.CheckServiceReads
		}
		if err := check(ctx); err != nil {
			return err
		}
		if u == reads {
			a.noteReplica(ctx, s)
		}
		c, err := a.settings(cmd)
		if err != nil {
			return err
		}
		acts := audit.New(audit.Config{Store: s, Log: a.maskedLogger(c.Log)})
		a.operator = operate.New(operate.Config{Tokens: s, Audit: acts})
		return f(ctx, s)
	})
}

// tokenView is an access token without its hash.
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
	return a.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List the access tokens",
		Long: "List the tokens, expired ones too: by name, and what each may do. The tokens themselves cannot be " +
			"shown again.",
		Example: `  delaytask token list
  delaytask token list --json | jq -r '.items[] | select(.expired) | .name'`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.onTokens(cmd, reads, func(ctx context.Context, s *sqlstore.Store) error {
				tokens, now, err := s.AccessTokens(ctx)
				if err != nil {
					return err
				}
				views := viewsOf(tokens, func(t *row.AccessToken) tokenView { return viewOfToken(*t, now.Time) })
				if a.json {
					return a.printJSON(list[tokenView]{Items: views})
				}
				return a.printTokens(views)
			})
		},
	})
}

func (a *app) printTokens(tokens []tokenView) error {
	if len(tokens) == 0 {
		return a.printf("There are no tokens.\n")
	}
	t := a.newTable("NAME", "TAGS", "VERBS", "CREATED", "EXPIRES").mayCut(1, 2)
	for _, v := range tokens {
		expires := "never"
		switch {
		case v.Expired && slices.Contains(v.Verbs, row.BootstrapVerb):
			expires = moment(v.Expires.Std()) + " (ended)"
		case v.Expired:
			expires = moment(v.Expires.Std()) + " (expired)"
		case !v.Expires.IsZero():
			expires = moment(v.Expires.Std())
		}
		t.row(v.Name, strings.Join(v.Tags, " "), strings.Join(v.Verbs, " "), moment(v.Created.Std()), expires)
	}
	return t.flush()
}

func (a *app) tokenRevokeCommand() *cobra.Command {
	return a.withJSON(&cobra.Command{
		Use:   "revoke NAME",
		Short: "Delete an access token",
		Long: `Delete a token. All servers refuse it within 2 seconds; one that cannot reach the database, within 5
minutes. What its caller has saved stays. The one of DELAYTASK_BOOTSTRAP_TOKEN stays listed as ended: its value
is never good again.`,
		Example: "  delaytask token revoke shop",
		Args:    wanted(1, 1, "the name of the access token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onTokens(cmd, changes, func(ctx context.Context, _ *sqlstore.Store) error {
				if err := a.operator.RevokeToken(ctx, by(), args[0]); err != nil {
					return err
				}
				return a.say(struct {
					Name    string `json:"name"`
					Revoked bool   `json:"revoked"`
				}{args[0], true}, "Revoked %s; all servers refuse it within 2 seconds.\n", oneLine(args[0]))
			})
		},
	})
}

type tokenFlags struct {
	tags, verbs []string
	expires     relative
}

func (a *app) tokenCreateCommand() *cobra.Command {
	var f tokenFlags
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create an access token and print it",
		Long: `Create a token and print it. It is shown this once: the database keeps only its hash.
All servers know it within 2 seconds. With server.auth: auto, a service on loopback that was started
without tokens asks for them from then on. A token with all verbs for all tags ends the one of
DELAYTASK_BOOTSTRAP_TOKEN.

A tag ends in * to stand for all tags that begin so; * alone stands for all. The verbs are
  save       save tasks
  save_http  save tasks of the built-in tag "http": whoever may, chooses where the server sends requests
  read       see tasks and schedules, without their bodies
  bodies     see the bodies too, beside read
  change     cancel, reschedule and retry tasks, and change their bodies
  work       pop tasks, and finish, fail, release and touch them
  observe    see nodes, statistics, forecasts and receivers
  operate    pause and resume tags and schedules, trigger and backfill schedules; it includes observe
  metrics    read /metrics; it takes the tags '*'
  audit      see what people have changed; what is about no single tag takes the tags '*'
  register   register receivers: addresses that the server calls with tasks
  schedule   save and delete schedules; for the tag "http" it also takes save_http
  all        all of these, save_http and register included`,
		Example: `  delaytask token create shop --tags 'order.*' --verbs save,read
  delaytask token create mailer --tags mail.send,mail.receive --verbs work --expires 90d
  TOKEN=$(delaytask token create admin --tags '*' --verbs all)`,
		Args: wanted(1, 1, "the name of the access token"),
		RunE: func(cmd *cobra.Command, args []string) error {
			verbs, err := access.ParseVerbs(f.verbs)
			if err != nil {
				return err
			}
			if now := time.Now(); f.expires.given && !f.expires.from(now).After(now) {
				return misusedf("--expires: the token would never be good")
			}
			secret, token, err := access.New(args[0], f.tags, verbs, 0)
			if err != nil {
				return err
			}
			return a.onTokens(cmd, changes, func(ctx context.Context, s *sqlstore.Store) error {
				return a.createToken(ctx, s, secret, token, f.expires)
			})
		},
	}
	cmd.Flags().StringSliceVar(&f.tags, "tags", nil, "tags that it may use, such as mail.send,order.* or * for all")
	cmd.Flags().StringSliceVar(&f.verbs, "verbs", nil, "what it may do: "+strings.Join(verbNames(), ", "))
	parsedVar(cmd, &f.expires, "expires", parseRelative,
		"refuse it after 12h or 90d (from now), or from 2027-01-31 on (default: never)")
	values(cmd, "verbs", verbNames()...)
	return a.withJSON(cmd)
}

func verbNames() []string {
	names := make([]string, 0, len(access.Verbs)+1)
	for _, v := range access.Verbs {
		names = append(names, string(v))
	}
	return append(names, string(access.All))
}

// createToken stores the token before it prints it, so that a printed token is valid.
func (a *app) createToken(
	ctx context.Context, s *sqlstore.Store, secret string, token row.AccessToken, expires relative,
) error {
	if expires.given {
		now, err := s.Now(ctx)
		if err != nil {
			return err
		}
		token.Expires = row.At(expires.from(now.Time.Std()))
	}
	if err := a.operator.CreateToken(ctx, by(), token); err != nil {
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
	return moment(token.Expires.Std())
}
