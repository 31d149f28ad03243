package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
)

// outcome is what became of one task that was to be changed.
type outcome struct {
	ID    int64            `json:"id,string,omitempty"`
	Tag   string           `json:"tag,omitempty"` // with Key where the task was named by them
	Key   string           `json:"key,omitempty"`
	App   string           `json:"app,omitempty"`
	Met   delaytask.Status `json:"met,omitempty"` // absent when it was not changed
	Error *failure         `json:"error,omitempty"`
}

// changeEach changes the named tasks one by one. One that cannot be changed does not keep the others from it.
func (a *app) changeEach(
	cmd *cobra.Command, args []string, name *taskName, past string,
	change func(*delaytask.Scheduler, delaytask.Ref) (delaytask.Status, error),
) error {
	refs, outcomes, err := named(args, name)
	if err != nil {
		return err
	}
	return a.onTasks(cmd, changes, func(ctx context.Context, s *delaytask.Scheduler) error {
		var failures []error
		for i, ref := range refs {
			was, err := change(s, ref)
			outcomes[i].Met = was
			if err != nil {
				outcomes[i].Met, outcomes[i].Error = "", failureOf(err)
				failures = append(failures, err)
			} else if !a.json {
				if err := a.printf("%s\n", report(ref, past, was)); err != nil {
					return err
				}
			}
			if ctx.Err() != nil {
				break
			}
		}
		if a.json {
			if err := a.printJSON(list[outcome]{Items: outcomes}); err != nil {
				return err
			}
		}
		return a.eachFailed(failures, counted(len(refs), "task"), past)
	})
}

// eachFailed reports one failure as it is, and several one by one. In JSON the items have told them.
func (a *app) eachFailed(failures []error, all, past string) error {
	if len(failures) <= 1 {
		return errors.Join(failures...)
	}
	if !a.json {
		for _, err := range failures {
			a.note("delaytask: %s\n", sentence(err))
		}
	}
	return fmt.Errorf("%d of %s were not %s, %w", len(failures), all, past, errPartly)
}

var errPartly = errors.New("each for a reason of its own")

func named(args []string, name *taskName) ([]delaytask.Ref, []outcome, error) {
	if len(args) == 0 || name.byKey() {
		ref, err := name.ref(args)
		return []delaytask.Ref{ref}, []outcome{{Tag: name.tag, Key: name.key, App: name.app}}, err
	}
	numbers, err := parseIDs(args)
	refs, outcomes := make([]delaytask.Ref, len(numbers)), make([]outcome, len(numbers))
	for i, n := range numbers {
		refs[i], outcomes[i] = delaytask.ID(n), outcome{ID: n}
	}
	return refs, outcomes, err
}

func report(ref delaytask.Ref, past string, was delaytask.Status) string {
	if was == delaytask.Executing {
		return fmt.Sprintf("%s %v while it was executing: it may have done its work.", title(past), ref)
	}
	return fmt.Sprintf("%s %v.", title(past), ref)
}
