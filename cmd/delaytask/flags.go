package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/server/config"
	"github.com/delaytask/delaytask/internal/wire"
)

// parsed is a flag whose text is parsed as it is read. Its errors name the flag.
type parsed[T any] struct {
	name, text string
	to         *T
	parse      func(text string) (T, error)
}

func (f *parsed[T]) String() string { return f.text }
func (f *parsed[T]) Type() string   { return "string" } // what the help calls it

func (f *parsed[T]) Set(text string) (err error) {
	if *f.to, err = f.parse(text); err != nil {
		return misusedf("--%s: %w", f.name, err)
	}
	f.text = text
	return nil
}

// parsedVar adds a flag of any type.
func parsedVar[T any](cmd *cobra.Command, to *T, name string, parse func(string) (T, error), usage string) {
	cmd.Flags().Var(&parsed[T]{name: name, to: to, parse: parse}, name, usage)
}

// durationVar adds a flag whose default is what it points to.
func durationVar(cmd *cobra.Command, to *time.Duration, name, usage string) {
	parsedVar(cmd, to, name, wire.ParseDuration, usage)
	if *to != 0 {
		cmd.Flags().Lookup(name).DefValue = wire.FormatDuration(*to)
	}
}

// values lets the shell complete a flag from a list.
func values(cmd *cobra.Command, flag string, list ...string) {
	complete(cmd, flag, cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp))
}

func complete(cmd *cobra.Command, flag string, f cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, f); err != nil {
		panic(fmt.Sprintf("completion of --%s: %v", flag, err)) // the flag does not exist, or has a completion already
	}
}

// withJSON adds --json to a command that prints data.
func (a *app) withJSON(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.json, "json", false, "print JSON")
	return cmd
}

// withRaw adds --raw to a command that shows bodies, headers or errors.
func (a *app) withRaw(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().BoolVar(&a.raw, "raw", false, "show secrets in bodies, headers and errors instead of hiding them")
	return a.withJSON(cmd)
}

// addSettings adds flags of settings. The shell completes files for some of them.
func addSettings(cmd *cobra.Command, keys ...string) {
	config.AddFlags(cmd.Flags(), keys...)
	for _, name := range []string{"server-tls-cert", "server-tls-key", "server-tls-client-ca"} {
		if cmd.Flags().Lookup(name) != nil {
			complete(cmd, name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
		}
	}
}
