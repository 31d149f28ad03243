package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask"
)

// bulkFlags are the flags of a command that can change all tasks that match.
type bulkFlags struct {
	filterFlags
	dryRun, yes bool
}

func (f *bulkFlags) addFlags(cmd *cobra.Command, older string) {
	f.filterFlags.addFlags(cmd, older)
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "only count the tasks that match")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "do not ask; needed where nobody can be asked, as in a script")
}

func (f *bulkFlags) given() bool {
	return f.tag != "" || f.status != "" || f.older != "" || f.key != "" || f.app != ""
}

// bulk is one such change.
type bulk struct {
	verb   string           // cancel
	past   string           // cancelled
	status delaytask.Status // that it changes
	all    func(*delaytask.Scheduler, context.Context, delaytask.Bulk) (int, error)
}

// changeAll counts, asks, and changes. Counting first is what makes the question and the progress bar meaningful.
func (a *app) changeAll(cmd *cobra.Command, f *bulkFlags, b bulk) error {
	if f.status != "" && f.status != string(b.status) {
		return misusedf("--status %s: only %s tasks can be %s", f.status, b.status, b.past)
	}
	filterAt, err := f.filter(cmd)
	if err != nil {
		return err
	}
	if !f.yes && !f.dryRun && !a.interactive {
		return misusedf("there is nobody to ask whether to %s all tasks that match: add --yes", b.verb)
	}
	return a.onTasks(cmd, changes, func(ctx context.Context, s *delaytask.Scheduler) error {
		filter := filterAt(s.Now())
		matched, err := b.all(s, ctx, delaytask.Bulk{Filter: filter, DryRun: true})
		if err != nil {
			return err
		}
		if f.dryRun || matched == 0 {
			return a.printBulk(b, matched, 0, f.dryRun)
		}
		if !f.yes {
			question := fmt.Sprintf("%s %s?", title(b.verb), counted(matched, string(b.status)+" task"))
			if err := a.confirm(ctx, question); err != nil {
				return err
			}
		}
		bar := a.newBar(matched, time.Now)
		changed, err := b.all(s, ctx, delaytask.Bulk{Filter: filter, Progress: bar.set})
		bar.end()
		if err != nil {
			return fmt.Errorf("%s %s, then: %w", b.past, counted(changed, "task"), err)
		}
		return a.printBulk(b, matched, changed, false)
	})
}

func (a *app) printBulk(b bulk, matched, changed int, dryRun bool) error {
	switch {
	case a.json:
		return a.printJSON(struct {
			Matched int  `json:"matched"`
			Changed int  `json:"changed"`
			DryRun  bool `json:"dry_run"`
		}{matched, changed, dryRun})
	case matched == 0:
		return a.printf("No %s task matches.\n", b.status)
	case dryRun:
		return a.printf("%s would be %s.\n", counted(matched, string(b.status)+" task"), b.past)
	case changed != matched:
		return a.printf("%s %s of %s; the others changed meanwhile.\n", title(b.past), grouped(changed), counted(matched, "task"))
	default:
		return a.printf("%s %s.\n", title(b.past), counted(changed, "task"))
	}
}
