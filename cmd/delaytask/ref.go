package main

import (
	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
)

// taskName is how a command line names one task: by its id, or by its tag and key while it is unfinished.
type taskName struct{ tag, key, app string }

const taskNameWanted = "the id of one task, or --tag and --key of an unfinished one"

func (n *taskName) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&n.tag, "tag", "", "with --key: the tag of an unfinished task")
	cmd.Flags().StringVar(&n.key, "key", "", "with --tag: the key of an unfinished task")
	cmd.Flags().StringVar(&n.app, "app", "", "with --key: the application that the key belongs to (default: none)")
	noFiles(cmd, "tag", "key", "app")
}

func (n *taskName) byKey() bool { return n.tag != "" || n.key != "" || n.app != "" }

func (n *taskName) ref(args []string) (delaytask.Ref, error) {
	byKey := n.byKey()
	switch {
	case byKey && (n.tag == "" || n.key == "" || len(args) > 0), !byKey && len(args) != 1:
		return delaytask.Ref{}, misusedf("want %s", taskNameWanted)
	case byKey:
		return delaytask.Key(n.tag, n.key).InApp(n.app), nil
	}
	number, err := parseID(args[0])
	return delaytask.ID(number), err
}
