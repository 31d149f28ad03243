package bulk_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/report"
)

func everything(*bulk.State) bool { return true }

// process has its runs, and shares the store.
type process struct {
	bulk.Runs
	store audit.Store
	log   *audit.Log
	lines bytes.Buffer
}

func newProcess(s audit.Store) *process {
	p := &process{store: s}
	p.log = audit.New(audit.Config{Store: s, Log: slog.New(slog.NewTextHandler(&p.lines, nil))})
	return p
}

// begin starts a run that tells 500, and goes on until it is stopped or the channel is closed.
func (p *process) begin(t *testing.T, about bulk.About, end <-chan struct{}) bulk.State {
	t.Helper()
	run, err := p.Start(about, func() (*audit.Entry, error) {
		return p.log.Begin(t.Context(), audit.Act{Who: about.Who, Action: audit.CancelAll, Tag: about.Filter.Tag})
	}, func(ctx context.Context, progress func(int)) (int, error) {
		progress(500)
		select {
		case <-ctx.Done():
			return 700, ctx.Err()
		case <-end:
			return 900, nil
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func (p *process) find(t *testing.T, id string) bulk.State {
	t.Helper()
	run, err := p.Find(t.Context(), p.store, id)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestEveryProcessSeesARunAndStopsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		one, two := newProcess(s), newProcess(s)
		defer one.End()
		about := bulk.About{Verb: "cancel", Who: "ops", Tasks: 2000, Capped: true,
			AsOf: time.Now().Add(-time.Hour).UTC(),
			Filter: delaytask.Filter{Status: delaytask.Pending, Tag: "a", Key: "k", App: "s", LateBy: time.Second,
				Error: "\"é", DueBefore: time.Now().UTC()}}
		begun := one.begin(t, about, nil)
		time.Sleep(1500 * time.Millisecond)
		for name, p := range map[string]*process{"its own": one, "another": two} {
			got := p.find(t, begun.ID)
			if got.About != about || got.Outcome != bulk.Running || got.Done != 500 || got.Alone || got.Stopping ||
				time.Since(got.Seen) > time.Second || got.Began.IsZero() || !got.Ended.IsZero() {
				t.Errorf("%s process sees %+v", name, got)
			}
			list, err := p.List(t.Context(), p.store, everything)
			if err != nil || len(list) != 1 || list[0].ID != begun.ID {
				t.Errorf("%s process lists %+v, %v", name, list, err)
			}
		}
		seen := two.find(t, begun.ID)
		if err := two.StopAny(t.Context(), two.store, &seen); err != nil {
			t.Fatal(err)
		}
		if got := two.find(t, begun.ID); !got.Stopping || got.Outcome != bulk.Running {
			t.Errorf("asked to stop: %+v", got)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for name, p := range map[string]*process{"its own": one, "another": two} {
			if got := p.find(t, begun.ID); got.Outcome != bulk.Stopped || got.Err != nil || got.Done != 700 ||
				got.Stopping || got.Ended.IsZero() {
				t.Errorf("stopped, %s process sees %+v", name, got)
			}
			if err := p.StopAny(t.Context(), p.store, &seen); err != nil { // it is over
				t.Errorf("%s process: %v", name, err)
			}
		}
		next := one.begin(t, bulk.About{}, nil)
		one.End()
		one.Wait(t.Context())
		if got := two.find(t, next.ID); got.Outcome != bulk.Stopped || got.Err == nil {
			t.Errorf("its process has stopped: %+v", got)
		}
	})
}

func TestTheRunOfAProcessThatDiedIsLostAndThatOfAnOldOneUntold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		p := newProcess(s)
		id, err := s.BeginAudit(t.Context(), row.AuditEntry{Action: "bulk.retry", Tag: "a", Detail: "tag=a"})
		if err != nil {
			t.Fatal(err)
		}
		old := p.find(t, "1")
		if id != 1 || old.Outcome != bulk.Untold || old.Verb != "retry" || old.Filter.Tag != "a" ||
			old.Detail != "tag=a" {
			t.Errorf("an old process runs %+v", old)
		}
		time.Sleep(time.Hour)
		if got := p.find(t, "1"); got.Outcome != bulk.Untold {
			t.Errorf("an hour later it is %s", got.Outcome)
		}
		if err := p.StopAny(t.Context(), s, &old); !errors.Is(err, bulk.ErrUntold) {
			t.Error(err)
		}
		page, err := audit.Read(t.Context(), s, report.AuditFilter{}, nil)
		if err != nil || page.Entries[0].Outcome != report.AuditUnderWay {
			t.Errorf("the log shows %+v, %v", page, err)
		}
		if _, err := s.ReportAudit(t.Context(), id, 500, "not JSON"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		if got := p.find(t, "1"); got.Outcome != bulk.Running {
			t.Errorf("seen 30 s ago it is %+v", got)
		}
		time.Sleep(time.Millisecond)
		lost := p.find(t, "1")
		if lost.Outcome != bulk.Lost || lost.Done != 500 || lost.Filter.Tag != "a" {
			t.Errorf("unseen it is %+v", lost)
		}
		page, err = audit.Read(t.Context(), s, report.AuditFilter{}, nil)
		if err != nil || page.Entries[0].Outcome != report.AuditLost || page.Entries[0].Tasks != 500 {
			t.Errorf("the log shows %+v, %v", page, err)
		}
		if err := p.StopAny(t.Context(), s, &lost); err != nil {
			t.Error(err)
		}
		if stop, err := s.ReportAudit(t.Context(), id, 501, ""); !stop || err != nil { // it lives after all
			t.Errorf("it learns of the stop: %t, %v", stop, err)
		}
	})
}

func TestReportsThatFailLeaveTheChangeAlone(t *testing.T) {
	for _, mode := range []faultstore.Mode{faultstore.Before, faultstore.Hang} {
		synctest.Test(t, func(t *testing.T) {
			s := faultstore.New(memstore.New(), faultstore.Method("ReportAudit", 0, mode))
			p := newProcess(s)
			defer p.End()
			end := make(chan struct{})
			run := p.begin(t, bulk.About{Verb: "cancel"}, end)
			time.Sleep(10 * time.Second)
			if got := p.find(t, run.ID); got.Outcome != bulk.Running || got.Done != 500 {
				t.Errorf("%v: its own process sees %+v", mode, got)
			}
			begun := time.Now()
			close(end)
			for p.find(t, run.ID).Outcome == bulk.Running {
				time.Sleep(time.Millisecond)
			}
			if got := newProcess(s).find(t, run.ID); got.Outcome != bulk.Done || got.Done != 900 {
				t.Errorf("%v: it ended as %+v", mode, got)
			}
			if took := time.Since(begun); took > 3*time.Second { // of the clock of the bubble
				t.Errorf("%v: it waited %v for its reports", mode, took)
			}
			if n := strings.Count(p.lines.String(), "do not see how far"); n != 1 {
				t.Errorf("%v: %d lines: %s", mode, n, p.lines.String())
			}
		})
	}
}

func TestARunThatIsNotRecordedIsKnownToItsProcessAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := memstore.New()
		one, two := newProcess(s), newProcess(s)
		defer one.End()
		one.log.Level = audit.Off
		run := one.begin(t, bulk.About{Verb: "cancel"}, nil)
		if got := one.find(t, run.ID); !got.Alone || got.Outcome != bulk.Running {
			t.Errorf("its process sees %+v", got)
		}
		for _, id := range []string{run.ID, "0", "-1", "01", "9223372036854775807", "7"} {
			if _, err := two.Find(t.Context(), s, id); !errors.Is(err, bulk.ErrUnknown) {
				t.Errorf("%s: %v", id, err)
			}
		}
		if list, err := one.List(t.Context(), s, everything); err != nil || len(list) != 1 {
			t.Errorf("its process lists %+v, %v", list, err)
		}
		if list, err := two.List(t.Context(), s, everything); err != nil || len(list) != 0 {
			t.Errorf("another lists %+v, %v", list, err)
		}
		if err := one.StopAny(t.Context(), s, &run); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got := one.find(t, run.ID); got.Outcome != bulk.Stopped {
			t.Errorf("stopped it is %+v", got)
		}
	})
}

func TestWithoutAnEntryNoRunBegins(t *testing.T) {
	t.Parallel()
	var runs bulk.Runs
	failed := errors.New("not stored")
	for range 9 { // more than run at once
		_, err := runs.Start(bulk.About{}, func() (*audit.Entry, error) { return nil, failed }, nil)
		if !errors.Is(err, failed) {
			t.Fatal(err)
		}
	}
	if all := runs.All(); len(all) != 0 {
		t.Errorf("there are %+v", all)
	}
	runs.End()
	runs.Wait(t.Context())
}
