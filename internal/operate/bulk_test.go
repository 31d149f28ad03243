package operate_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/scheduler"
	_ "github.com/delaytask/delaytask/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

// Two processes share a database. The one that does not run a change shows it, stops it, and sees when it is lost.
func TestAnotherProcessShowsAndStopsARun(t *testing.T) {
	servertest.Each(t, func(t *testing.T, d dbtest.Database) {
		one, two := servertest.Open(t, d.DSN, scheduler.Config{}), servertest.Open(t, d.DSN, scheduler.Config{})
		log := audit.New(audit.Config{
			Store: core.Of(one).Store(), Log: slog.New(slog.DiscardHandler),
		})
		about := bulk.About{Verb: "cancel", Who: "ops", Tasks: 3000, AsOf: time.Now().UTC().Truncate(time.Microsecond),
			Filter: delaytask.Filter{Status: delaytask.Pending, Tag: "a", Error: "é\"\\"}}
		begun, err := core.Of(one).Bulks().Start(about, func() (*audit.Entry, error) {
			return log.Begin(t.Context(), audit.Act{Who: "ops", Via: audit.API, Action: audit.CancelAll, Tag: "a"})
		}, func(ctx context.Context, progress func(int)) (int, error) {
			progress(500)
			<-ctx.Done()
			return 700, ctx.Err()
		})
		servertest.OK(t, err)
		find := func() bulk.State {
			run, err := core.Of(two).Bulks().Find(t.Context(), core.Of(two).Store(), begun.ID)
			servertest.OK(t, err)
			return run
		}
		servertest.Eventually(t, "the other process sees how far it is", func() bool { return find().Done == 500 })
		run := find()
		if run.About != about || run.Outcome != bulk.Running || run.Alone || run.Began.IsZero() || run.Seen.IsZero() {
			t.Errorf("it sees %+v", run)
		}
		servertest.OK(t, core.Of(two).Bulks().StopAny(t.Context(), core.Of(two).Store(), &run))
		servertest.Eventually(t, "the run has stopped", func() bool { return find().Outcome == bulk.Stopped })
		if run = find(); run.Done != 700 || run.Err != nil || run.Ended.IsZero() {
			t.Errorf("stopped it is %+v", run)
		}
		// The process of the next one dies, and the process of the last one is of an older version.
		servertest.Exec(t, d.DSN, "INSERT INTO delay_task_audit (create_time, action, tag, tasks, bulk, seen_time)"+
			" VALUES ('2026-03-01 12:00:00.000000', 'bulk.retry', 'a', 7, '{}', '2026-03-01 12:00:09.000000')")
		servertest.Exec(t, d.DSN, "INSERT INTO delay_task_audit (create_time, action, tag)"+
			" VALUES ('2026-03-01 11:00:00.000000', 'bulk.retry', 'a')")
		everything := func(*bulk.State) bool { return true }
		list, err := core.Of(two).Bulks().List(t.Context(), core.Of(two).Store(), everything)
		servertest.OK(t, err)
		if len(list) != 3 || list[0].ID != begun.ID || list[1].Outcome != bulk.Lost || list[1].Done != 7 ||
			list[2].Outcome != bulk.Untold {
			t.Errorf("it lists %+v", list)
		}
	})
}

func TestAChangeThatFailsIsLogged(t *testing.T) {
	t.Parallel()
	d := dbtest.New(t, dbtest.SQLite)
	s := servertest.Open(t, d.DSN, scheduler.Config{})
	_, err := s.SaveDelayTask(t.Context(), "a", nil, time.Hour)
	servertest.OK(t, err)
	servertest.Exec(t, d.DSN, "CREATE TRIGGER refuses BEFORE UPDATE ON delay_task_message BEGIN"+
		" SELECT RAISE(ABORT, 'the trigger refuses'); END")
	var lines bytes.Buffer
	o := operate.New(operate.Config{Core: core.Of(s), Log: slog.New(slog.NewTextHandler(&lines, nil))})
	change, err := o.Bulk(operate.By{Caller: access.Everyone()}, "cancel", delaytask.Filter{Tag: "a"})
	servertest.OK(t, err)
	run, err := change.Start(t.Context(), bulk.About{AsOf: time.Now().Add(time.Hour)})
	servertest.OK(t, err)
	servertest.Eventually(t, "the change has failed", func() bool {
		state, _ := core.Of(s).Bulks().Get(run.ID)
		return state.Outcome == bulk.Failed
	})
	if line := lines.String(); !strings.Contains(line, "a bulk change failed") || !strings.Contains(line, "tag=a") ||
		!strings.Contains(line, "the trigger refuses") {
		t.Errorf("the log has %q", line)
	}
}
