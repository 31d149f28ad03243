package audit_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/audit"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/internal/testkit/faultstore"
	"github.com/delaytask/delaytask/report"
)

// newest returns the newest entry.
func newest(t *testing.T, s store.Auditor) row.AuditEntry {
	t.Helper()
	entries, err := s.AuditEntries(t.Context(), "", math.MaxInt64, 1)
	if err != nil || len(entries) != 1 {
		t.Fatalf("got %+v, %v", entries, err)
	}
	return entries[0]
}

// logTo returns a log of acts, and where its lines go.
func logTo(s store.Auditor, level audit.Level) (*audit.Log, *bytes.Buffer) {
	lines := new(bytes.Buffer)
	return audit.New(audit.Config{
		Store: s, Level: level, Log: slog.New(slog.NewTextHandler(lines, nil)),
	}), lines
}

func TestAnActHasAnEntryBeforeItAndItsOutcomeAfter(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	log, lines := logTo(s, "")
	ofDatabase := func(class row.Class) error {
		return fmt.Errorf("cancel 7: %w", &row.Error{Class: class, Op: "change tasks", Hint: "grant it",
			Err: errors.New("db.internal refused 'root'")})
	}
	for _, c := range []struct {
		err   error
		want  report.AuditOutcome
		tasks int64
		says  string
	}{
		{nil, report.AuditDone, 7, ""},
		{fmt.Errorf("cancel 7: %w", delaytask.ErrNotFound), report.AuditRefused, 0, "cancel 7: "},
		{errors.New(strings.Repeat("é", 1000) + "\xff"), report.AuditRefused, 0, "é…"},
		{ofDatabase(row.ClassCaller), report.AuditRefused, 0, "change tasks"},
		{ofDatabase(row.ClassOperator), report.AuditFailed, 3, "grant it"},
		{ofDatabase(row.ClassNotApplied), report.AuditFailed, 0, "not_applied"},
		{ofDatabase(row.ClassUnknown), report.AuditUnknown, 0, "unknown"},
		{fmt.Errorf("save: %w", delaytask.ErrOutcomeUnknown), report.AuditUnknown, 0, ""},
		{fmt.Errorf("cancel tasks: %w", context.Canceled), report.AuditUnknown, 500, "cancel tasks"},
	} {
		act := audit.Act{Who: "shop", Via: audit.API, Action: audit.CancelAll, Target: strings.Repeat("é", 1000),
			Tag: "a", Detail: "d"}
		err := log.Do(t.Context(), act, func(context.Context) (int64, error) {
			e := newest(t, s)
			if e.AuditEnd != (row.AuditEnd{}) || e.Who != "shop" || e.Via != "api" || e.Action != "bulk.cancel" ||
				e.Tag != "a" || e.Detail != "d" || len(e.Target) > row.AuditWhoBytes ||
				!strings.HasSuffix(e.Target, "é…") {
				t.Errorf("while it is under way there is %+v", e)
			}
			return c.tasks, c.err
		})
		e := newest(t, s)
		if !errors.Is(err, c.err) || e.Outcome != c.want || e.Tasks != c.tasks || e.End.IsZero() ||
			!strings.Contains(e.Error, c.says) || len(e.Error) > row.AuditErrorBytes ||
			strings.Contains(e.Error, "root") {
			t.Errorf("%v: got %v and %+v, want %v", c.err, err, e, c.want)
		}
	}
	if lines.Len() > 0 {
		t.Error(lines)
	}
}

func TestWithoutAnEntryThereIsNoAct(t *testing.T) {
	for _, mode := range []faultstore.Mode{faultstore.Before, faultstore.After, faultstore.Hang} {
		synctest.Test(t, func(t *testing.T) {
			log, _ := logTo(faultstore.New(memstore.New(), faultstore.Method("BeginAudit", 0, mode)), "")
			err := log.Do(t.Context(), audit.Act{Action: audit.PauseTag}, func(context.Context) (int64, error) {
				t.Error("it was done")
				return 0, nil
			})
			if !errors.Is(err, delaytask.ErrNotRecorded) {
				t.Errorf("%v: got %v", mode, err)
			}
		})
	}
}

func TestAnOutcomeOutlivesItsRequest(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	log, _ := logTo(s, "")
	ctx, cancel := context.WithCancel(t.Context())
	err := log.Do(ctx, audit.Act{Action: audit.CancelTask}, func(context.Context) (int64, error) {
		cancel()
		return 1, nil
	})
	if e := newest(t, s); err != nil || e.Outcome != report.AuditDone || e.Tasks != 1 {
		t.Errorf("got %+v, %v", e, err)
	}
	if err := log.Do(ctx, audit.Act{Action: audit.CancelTask}, nil); !errors.Is(err, context.Canceled) ||
		errors.Is(err, delaytask.ErrNotRecorded) {
		t.Errorf("a caller that has gone got %v", err)
	}
	func() {
		defer func() { _ = recover() }()
		_ = log.Do(t.Context(), audit.Act{Action: audit.CancelTask},
			func(context.Context) (int64, error) { panic("boom") })
	}()
	if e := newest(t, s); e.Outcome != report.AuditUnknown || e.Error == "" {
		t.Errorf("after a panic there is %+v", e)
	}
}

// To the log a process that dies is one whose second statement never comes.
func TestAnActWhoseOutcomeIsNotStoredStaysUnderWay(t *testing.T) {
	for _, mode := range []faultstore.Mode{faultstore.Before, faultstore.Hang} {
		synctest.Test(t, func(t *testing.T) {
			s := faultstore.New(memstore.New(), faultstore.Method("EndAudit", 0, mode))
			log, lines := logTo(s, "")
			for range 5 {
				if err := log.Do(t.Context(), audit.Act{Action: audit.RetryTask}, func(context.Context) (int64, error) {
					return 0, delaytask.ErrNotFailed
				}); !errors.Is(err, delaytask.ErrNotFailed) {
					t.Errorf("the result of the act became %v", err)
				}
			}
			page, err := audit.Read(t.Context(), s, report.AuditFilter{}, nil)
			if err != nil || len(page.Entries) != 5 || page.Entries[0].Outcome != report.AuditUnderWay ||
				!page.Entries[0].Ended.IsZero() {
				t.Errorf("got %+v, %v", page, err)
			}
			n := strings.Count(lines.String(), "is not in the audit log")
			if n == 0 || mode == faultstore.Before && n > 1 { // a call that hangs takes as long as lines are apart
				t.Errorf("%d lines: %s", n, lines)
			}
		})
	}
}

func TestLevelsLeaveOutActs(t *testing.T) {
	t.Parallel()
	for level, want := range map[audit.Level]int{"": 3, audit.All: 3, audit.Operate: 2, audit.Off: 0} {
		s := memstore.New()
		log, _ := logTo(s, level)
		done := 0
		for _, action := range []audit.Action{audit.CancelTask, audit.RevealBody, audit.CancelAll} {
			if err := log.Do(t.Context(), audit.Act{Action: action}, func(context.Context) (int64, error) {
				done++
				return 0, nil
			}); err != nil {
				t.Error(err)
			}
		}
		if entries, _ := s.AuditEntries(t.Context(), "", math.MaxInt64, 9); len(entries) != want || done != 3 {
			t.Errorf("%q: %d of %d acts are recorded, want %d", level, len(entries), done, want)
		}
	}
	var none *audit.Log
	err := none.Do(t.Context(), audit.Act{}, func(context.Context) (int64, error) { return 0, delaytask.ErrNotFound })
	if !errors.Is(err, delaytask.ErrNotFound) {
		t.Error(err)
	}
}

func TestPagesOfTheLog(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	const all = 10_500
	for i := range all {
		e := row.AuditEntry{Who: "a", Action: "task.cancel", Tag: "t"}
		if i < 3 {
			e = row.AuditEntry{Who: "b", Action: "tag.pause", Tag: []string{"", "u", "v"}[i]}
		}
		if _, err := s.BeginAudit(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	f := func(f report.AuditFilter, shown func(string) bool, entries int, first, next int64, stopped bool) {
		t.Helper()
		page, err := audit.Read(t.Context(), s, f, shown)
		if err != nil || len(page.Entries) != entries || entries > 0 && page.Entries[0].ID != first ||
			page.Next != next || page.Stopped != stopped {
			t.Errorf("%+v: got %d entries, %v, next %d, stopped %t, want %d, next %d", f, len(page.Entries), err,
				page.Next, page.Stopped, entries, next)
		}
	}
	f(report.AuditFilter{}, nil, 100, all, all-99, false)
	f(report.AuditFilter{Limit: 5000, Before: all}, nil, 1000, all-1, all-1000, false)
	f(report.AuditFilter{Limit: 2, Before: 3}, nil, 2, 2, 0, false)
	f(report.AuditFilter{Limit: 2, Before: 4}, nil, 2, 3, 2, false)
	f(report.AuditFilter{Before: 1}, nil, 0, 0, 0, false)
	f(report.AuditFilter{Who: "b"}, nil, 0, 0, all-9999, true)
	f(report.AuditFilter{Who: "b", Before: all - 9999}, nil, 3, 3, 0, false)
	f(report.AuditFilter{Action: "tag.pause", Tag: "u", Before: 1000}, nil, 1, 2, 0, false)
	f(report.AuditFilter{Before: 10}, func(tag string) bool { return tag == "v" }, 1, 3, 0, false)
	for _, wrong := range []report.AuditFilter{{Before: -1}, {Limit: -1}} {
		if _, err := audit.Read(t.Context(), s, wrong, nil); !errors.Is(err, delaytask.ErrInvalidOption) {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
}

func TestDetailsOfActs(t *testing.T) {
	t.Parallel()
	at := time.Date(2027, 1, 31, 9, 30, 0, 5000, time.FixedZone("", 3600))
	for want, got := range map[string]string{
		`@daily ; @yearly in Europe/Berlin`: audit.SpecText(delaytask.Spec{Lines: []string{"@daily", "@yearly"},
			Zone: "Europe/Berlin"}),
		`from=2027-01-31T08:30:00.000005Z to=2027-01-31T09:30:00.000005Z`: audit.RangeText(at, at.Add(time.Hour)),
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
