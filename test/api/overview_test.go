package api

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
)

// overviewOf waits for an overview that meets the condition. Each reading is kept for 5 s.
func overviewOf(
	t *testing.T, s processor.Scheduler, what string, holds func(report.Overview) bool,
) (o report.Overview) {
	t.Helper()
	servertest.Eventually(t, what, func() bool {
		var err error
		o, err = s.Overview(t.Context())
		servertest.OK(t, err)
		return holds(o)
	})
	return o
}

func finds(o report.Overview, code report.FindingCode, tag string) (f report.Finding, found bool) {
	i := slices.IndexFunc(o.Attention, func(f report.Finding) bool { return f.Code == code && f.Tag == tag })
	if i < 0 {
		return f, false
	}
	return o.Attention[i], true
}

// On each database, findings come and go with what they are about, and no part is missing.
func TestAnOverviewFollowsTheTasks(t *testing.T) {
	servertest.Each(t, func(t *testing.T, d dbtest.Database) {
		s := open(t, d)
		late := save(t, s, "late", 0)
		save(t, s, "later", 30*time.Second)
		save(t, s, "later", 30*time.Minute)
		o := overviewOf(t, s, "a tag is not served", func(o report.Overview) bool {
			f, found := finds(o, report.FindingUnserved, "late")
			return found && f.Task == late && f.Number == 1
		})
		if len(o.Missing) > 0 || len(o.Tags) != 2 || o.Totals.DueNextMinute.Tasks != 1 || o.Totals.Overdue.Tasks != 1 ||
			o.Tags[1].Counts[delaytask.Pending] != 2 || len(o.Due) != 60 ||
			len(o.Tags[1].Due) != report.OverviewSteps {
			t.Errorf("got %+v", o)
		}
		start(t, s, "late", nothing)
		start(t, s, "bad", func(context.Context, *delaytask.Task) error {
			return processor.Permanent(errors.New(`dial "db": refused`))
		})
		settled(t, s, late)
		bad := settled(t, s, save(t, s, "bad", 0))
		o = overviewOf(t, s, "a task has failed, and none is overdue", func(o report.Overview) bool {
			f, found := finds(o, report.FindingFailing, "bad")
			return found && f.Task == bad.ID && f.Error == "dial *: refused" && o.Totals.Overdue.Tasks == 0
		})
		if len(o.Attention) != 1 || len(o.Missing) > 0 || o.Totals.Nodes != 1 || len(o.Tags) != 3 ||
			len(o.Tags[0].Nodes) != 1 || o.Tags[0].Nodes[0].Name != "blue" {
			t.Errorf("got %+v", o)
		}
	})
}

func TestAnOverviewOfBothFormsIsTheSame(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		save(t, s, "a", 0, delaytask.WithKey("k"))
		servertest.OK(t, s.Pause(t.Context(), "a"))
		o := overviewOf(t, s, "a paused task is overdue", func(o report.Overview) bool {
			_, found := finds(o, report.FindingPausedOverdue, "a")
			return found
		})
		if o.Tags[0].Tag != "a" || !o.Tags[0].Paused || o.Tags[0].Overdue.Tasks != 1 || o.Tags[0].OldestDue.IsZero() ||
			len(o.Tags[0].LastHour) != report.OverviewSteps || o.HourStart.IsZero() || o.Age < 0 {
			t.Errorf("got %+v", o)
		}
	})
}

// A processor that ignores its context is shown with its stack until it returns.
func TestAnOverviewShowsWhereAProcessorHangs(t *testing.T) {
	t.Parallel()
	s, _ := embedded(t)
	begun, obey := make(chan struct{}), make(chan struct{})
	start(t, s, "a", func(context.Context, *delaytask.Task) error {
		close(begun)
		return hangUntil(obey)
	})
	id := save(t, s, "a", 0)
	servertest.Receive(t, begun, "its processor has begun") // the row says so before
	_, err := s.Cancel(t.Context(), delaytask.ID(id))
	servertest.OK(t, err)
	o := overviewOf(t, s, "it hangs", func(o report.Overview) bool {
		f, found := finds(o, report.FindingHanging, "a")
		return found && f.Task == id && strings.Contains(f.Stack, "hangUntil") && !f.Since.IsZero()
	})
	if own, err := s.OverviewFor(t.Context(), report.OverviewFilter{
		Sees: func(tag string) bool { return tag == "a" },
	}); err != nil || len(own.Attention) != len(o.Attention)-1 {
		t.Errorf("a viewer of the tag alone sees %+v, %v", own.Attention, err)
	}
	close(obey)
	overviewOf(t, s, "it has returned", func(o report.Overview) bool {
		_, found := finds(o, report.FindingHanging, "a")
		return !found
	})
}

func hangUntil(c <-chan struct{}) error {
	<-c
	return nil
}
