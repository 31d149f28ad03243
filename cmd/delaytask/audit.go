package main

import (
	"cmp"
	"context"
	"os"
	"os/user"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

// operator names who runs the command.
func operator() string {
	name := "uid " + strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil {
		name = cmp.Or(u.Username, name)
	}
	host, _ := os.Hostname()
	return name + "@" + cmp.Or(host, "unknown")
}

// by is who runs the command, who may do everything.
func by() operate.By {
	caller := access.NewCaller(operator(), []access.Verb{access.All}, []string{"*"})
	return operate.By{Caller: caller, Via: audit.Command}
}

// view is what the command shows: everything, with masks unless secrets are asked for.
func (a *app) view() *operate.View { return a.operator.View(by()).Raw(a.raw) }

func (a *app) auditCommand() *cobra.Command {
	var f report.AuditFilter
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "List what people have changed",
		Long: `List what people have changed, through the service, this command and the dashboard, the newest first. An
entry is stored before the change, and its outcome after it. A change without an outcome is under way, or its process
has died: it may have been made. A bulk change is listed as "its process died" when nobody saw the process for 30 s.
WHO is the name of the access token, or user@host of the command. Changes by Go programs are not recorded.`,
		Example: `  delaytask audit
  delaytask audit --action bulk.cancel --tag mail.send
  delaytask audit --who shop --limit 1000 --json`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.Limit < 1 {
				return misusedf("--limit %d: want 1 or more", f.Limit)
			}
			return a.onTasks(cmd, reads, func(ctx context.Context, _ *scheduler.Scheduler) error {
				page, err := a.view().Entries(ctx, f)
				if err != nil {
					return err
				}
				return a.printAudit(&page)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.Who, "who", "", "only entries of this access token, or user@host")
	flags.StringVar(&f.Action, "action", "", "only this action, such as task.cancel, bulk.retry or tag.pause")
	flags.StringVar(&f.Tag, "tag", "", "only entries of this tag")
	flags.Int64Var(&f.Before, "before", 0, "the next page: what this list has said at its end")
	flags.IntVar(&f.Limit, "limit", 100, "at most this many, up to 1000; it says when there are more")
	values(cmd, "action", audit.Actions()...)
	return a.withJSON(cmd)
}

func (a *app) printAudit(page *report.AuditPage) error {
	if a.json {
		next := ""
		if page.Next != 0 {
			next = id(page.Next)
		}
		return a.printJSON(list[wire.AuditEntry]{
			Items: wire.FromAuditPage(page).Entries, Next: next, Stopped: page.Stopped,
		})
	}
	if len(page.Entries) == 0 && !page.Stopped {
		return a.printf("There is no such entry.\n")
	}
	t := a.newTable("TIME", "WHO", "VIA", "ACTION", "TARGET", "TAG", "TASKS", "OUTCOME", "DETAIL").mayCut(1, 4, 8)
	for _, e := range page.Entries {
		tasks, outcome, detail := grouped(int(e.Tasks)), string(e.Outcome), e.Detail
		switch {
		case e.Outcome == report.AuditUnderWay && e.Tasks == 0:
			tasks, outcome = "", "under way, or its process died"
		case e.Outcome == report.AuditUnderWay:
			outcome = "under way, or its process died"
		case e.Outcome == report.AuditLost:
			outcome = "its process died"
		}
		if e.Error != "" {
			detail = strings.TrimPrefix(detail+"; "+e.Error, "; ")
		}
		t.row(moment(e.Time), e.Who, e.Via, e.Action, e.Target, e.Tag, tasks, outcome, detail)
	}
	if err := t.flush(); err != nil {
		return err
	}
	switch {
	case page.Stopped:
		a.note("It has looked at 10,000 entries; to go on, add --before %d.\n", page.Next)
	case page.Next != 0:
		a.note("There is more: add --before %d.\n", page.Next)
	}
	return nil
}
