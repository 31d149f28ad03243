package api

import (
	"errors"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
)

// The service records what its callers change, and not what they save. The library and the client show it.
func TestAuditShowsWhatCallersOfTheServiceHaveChanged(t *testing.T) {
	t.Parallel()
	d := dbtest.New(t, dbtest.SQLite)
	library, client := open(t, d), dial(t, serveOn(t, d))
	id := save(t, client, "a", time.Hour)
	_, err := client.Cancel(t.Context(), delaytask.ID(id))
	servertest.OK(t, err)
	if err := client.Retry(t.Context(), delaytask.ID(id)); !errors.Is(err, delaytask.ErrNotFailed) {
		t.Error(err)
	}
	servertest.OK(t, client.Pause(t.Context(), "b"))
	servertest.OK(t, library.Resume(t.Context(), "b")) // by a program
	for name, s := range map[string]processor.Scheduler{"library": library, "client": client} {
		page, err := s.Audit(t.Context(), report.AuditFilter{Limit: 2})
		servertest.OK(t, err)
		if n := len(page.Entries); n != 2 || page.Next != page.Entries[1].ID || page.Stopped {
			t.Fatalf("%s: %+v", name, page)
		}
		paused, retried := page.Entries[0], page.Entries[1]
		if paused.Action != "tag.pause" || paused.Tag != "b" || paused.Via != "api" || paused.Who != "" ||
			paused.Outcome != report.AuditDone || paused.Ended.Before(paused.Time) || paused.Time.IsZero() {
			t.Errorf("%s: %+v", name, paused)
		}
		if retried.Outcome != report.AuditRefused || retried.Error == "" {
			t.Errorf("%s: %+v", name, retried)
		}
		page, err = s.Audit(t.Context(), report.AuditFilter{Action: "task.cancel", Tag: "a", Before: page.Next})
		if err != nil || len(page.Entries) != 1 || page.Entries[0].Tasks != 1 || page.Next != 0 {
			t.Errorf("%s: %+v, %v", name, page, err)
		}
		for _, wrong := range []report.AuditFilter{{Before: -1}, {Limit: -1}} {
			if _, err := s.Audit(t.Context(), wrong); !errors.Is(err, delaytask.ErrInvalidOption) {
				t.Errorf("%s: %+v: %v", name, wrong, err)
			}
		}
	}
}
