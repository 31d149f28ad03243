package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/store"
)

func (a *app) tokenRevokeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "revoke NAME",
		Short: "Delete a token",
		Long: `Delete a token. All servers refuse it within 2 seconds; one that cannot reach the database, within 5 minutes.
What its caller has saved stays.`,
		Example:           "  delaytask token revoke shop",
		Args:              wanted(1, 1, "the name of the token"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.onTokens(cmd, changes, func(ctx context.Context, s *store.Store) error {
				if err := s.DeleteToken(ctx, args[0]); err != nil {
					return err
				}
				if a.json {
					return a.printJSON(struct {
						Name    string `json:"name"`
						Revoked bool   `json:"revoked"`
					}{args[0], true})
				}
				return a.printf("Revoked %s; all servers refuse it within 2 seconds.\n", oneLine(args[0]))
			})
		},
	}
	a.jsonFlag(cmd)
	return cmd
}
