package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/store"
)

func (a *app) tokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Say who may call the HTTP service, and what each may do",
		Long: `Say who may call the HTTP service, and what each may do. A caller sends its token in the header
"Authorization: Bearer TOKEN". The tokens are kept in the database, each only as a hash.`,
		Example: `  delaytask token create shop --tags 'order.*' --verbs save,read
  delaytask token list
  delaytask token revoke shop`,
		Args: oneOf,
		RunE: oneOf,
	}
	cmd.AddCommand(a.tokenCreateCommand(), a.tokenListCommand(), a.tokenRevokeCommand())
	return cmd
}

// onTokens runs f on the store of a database that has the tables of the service.
func (a *app) onTokens(cmd *cobra.Command, u use, f func(context.Context, *store.Store) error) error {
	c, err := a.settings(cmd)
	if err != nil {
		return err
	}
	if err := a.admit(cmd.Context(), c, u); err != nil {
		return err
	}
	db, kind, err := store.Connect(cmd.Context(), c.DSN)
	if err != nil {
		return err
	}
	defer db.Close()
	s := store.New(db, kind)
	defer func() { _ = s.Close(context.WithoutCancel(cmd.Context())) }() // closes connections that nobody uses any more
	if err := s.CheckService(cmd.Context()); err != nil {
		return err
	}
	return f(cmd.Context(), s)
}
