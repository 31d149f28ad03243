package api

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
	"github.com/delaytask/delaytask/scheduler"
)

func TestTagsArePaused(t *testing.T) {
	both(t, func(t *testing.T, s form) {
		ctx := t.Context()
		ran := make(chan string, 1)
		servertest.OK(t, s.Pause(ctx, "a", delaytask.Reason("the mail provider is down")))
		start(t, s, "a", func(context.Context, *delaytask.Task) error { ran <- "it"; return nil })
		id := save(t, s, "a", 0)
		if e, err := s.Explain(ctx, delaytask.ID(id)); err != nil || e.Reason != report.ReasonPaused {
			t.Errorf("got %+v, %v", e, err)
		}
		stats, err := s.Stats(ctx)
		if i := slices.IndexFunc(stats, func(s report.TagStats) bool { return s.Tag == "a" }); err != nil || i < 0 ||
			!stats[i].Paused || stats[i].Counts[delaytask.Pending] != 1 || stats[i].OldestPending.IsZero() {
			t.Errorf("got %+v, %v", stats, err)
		}
		tags, err := s.Tags(ctx)
		if !slices.ContainsFunc(tags, func(s report.TagState) bool {
			return s.Tag == "a" && s.Paused && s.Reason == "the mail provider is down"
		}) || err != nil {
			t.Errorf("got %+v, %v", tags, err)
		}
		servertest.OK(t, s.Resume(ctx, "a"))
		wait(t, ran)
		if task := settled(t, s, id); task.Status != delaytask.Completed {
			t.Errorf("got %+v", task)
		}
		if n := serving(t, s, "a"); n.Name != "blue" || !n.Alive || n.Leaving || n.PID == 0 || n.Heartbeat.IsZero() ||
			len(n.Shares) != len(n.Tags) || !slices.Contains(n.Shares,
			report.Share{Tag: "a", Position: 1, Total: 1}) {
			t.Errorf("got %+v", n)
		}
	})
}

// serving waits until the node has announced in the background that it serves the tag.
func serving(t *testing.T, s processor.Scheduler, tag string) report.Node {
	t.Helper()
	for {
		nodes, err := s.Nodes(t.Context())
		if err != nil || len(nodes) != 1 {
			t.Fatalf("got %+v, %v", nodes, err)
		}
		if slices.Contains(nodes[0].Tags, tag) {
			return nodes[0]
		}
	}
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// byHand returns a scheduler with a clock of the test, and processors for the tags.
func byHand(t *testing.T, tags ...string) *delaytasktest.Scheduler {
	t.Helper()
	s := delaytasktest.New(t, delaytasktest.StartAt(noon))
	for _, tag := range tags {
		servertest.OK(t, s.Register(tag, processor.Func(nothing)))
	}
	return s
}

func TestTagsAndStatsShowWhatIsServedPausedOrHasTasks(t *testing.T) {
	t.Parallel()
	s := byHand(t, "served", "both")
	if tags, err := s.Tags(t.Context()); len(tags) != 0 || tags == nil || err != nil {
		t.Errorf("of none: got %v, %v", tags, err)
	}
	for _, tag := range []string{"paused", "both", "resumed"} {
		servertest.OK(t, s.Pause(t.Context(), tag))
	}
	servertest.OK(t, s.Resume(t.Context(), "resumed"))
	save(t, s, "unserved", 0)
	for _, delay := range []time.Duration{0, 0, time.Minute, time.Hour} {
		save(t, s, "served", delay)
	}
	s.Advance(time.Minute)
	tags, err := s.Tags(t.Context())
	want := []report.TagState{
		{Tag: "both", Served: true, Paused: true}, {Tag: "paused", Paused: true}, {Tag: "served", Served: true},
	}
	if !slices.Equal(tags, want) || err != nil {
		t.Errorf("got %+v, %v; want %+v", tags, err, want)
	}
	stats, err := s.Stats(t.Context())
	if err != nil || len(stats) != 4 {
		t.Fatalf("got %+v, %v", stats, err)
	}
	for i, tag := range want {
		if got := stats[i]; got.Tag != tag.Tag || got.Served != tag.Served || got.Paused != tag.Paused ||
			i < 2 && len(got.Counts) != 0 {
			t.Errorf("got %+v, want %+v", got, tag)
		}
	}
	if served := stats[2]; served.Counts[delaytask.Completed] != 3 || served.Counts[delaytask.Pending] != 1 ||
		!served.OldestPending.Equal(noon.Add(time.Hour)) || served.Lateness.Samples != 3 || served.Lateness.Max != 0 {
		t.Errorf("the served tag: %+v", served)
	}
}

func TestLatenessOfAWindow(t *testing.T) {
	t.Parallel()
	s := byHand(t, "t", "other")
	for _, tag := range []string{"t", "other"} {
		save(t, s, tag, 0)
		for n := range 200 { // 0 to 199 minutes late, when they run at last
			save(t, s, tag, time.Hour+time.Duration(n)*time.Minute)
		}
		save(t, s, tag, 10*time.Hour)
	}
	s.Advance(5 * time.Minute)
	if err := s.Pause(t.Context(), "t"); err != nil { // so that what is due meanwhile starts late
		t.Fatal(err)
	}
	s.Advance(55*time.Minute + 200*time.Minute)
	servertest.OK(t, s.Resume(t.Context(), "t"))
	s.Advance(0)
	late := report.Lateness{
		Samples: 200, P50: 100 * time.Minute, P95: 190 * time.Minute, P99: 198 * time.Minute, Max: 200 * time.Minute,
	}
	all := late
	all.Samples++
	for window, want := range map[time.Duration]report.Lateness{
		time.Minute: late, 260*time.Minute - time.Microsecond: late, 260 * time.Minute: all, math.MaxInt64: all,
	} {
		if got, err := s.Lateness(t.Context(), "t", window); got != want || err != nil {
			t.Errorf("of %v: got %+v, %v; want %+v", window, got, err, want)
		}
	}
	s.Advance(10 * time.Minute)
	if got, err := s.Lateness(t.Context(), "t", 9*time.Minute); got != (report.Lateness{}) || err != nil {
		t.Errorf("of a window without tasks: got %+v, %v", got, err)
	}
	for _, bad := range []struct {
		tag    string
		window time.Duration
		want   error
	}{{"", time.Hour, delaytask.ErrInvalidTag}, {"a b", time.Hour, delaytask.ErrInvalidTag},
		{"t", 0, delaytask.ErrInvalidOption}, {"t", -1, delaytask.ErrInvalidOption}} {
		_, err := s.Lateness(t.Context(), bad.tag, bad.window)
		wantError(t, bad.tag, err, bad.want)
	}
}

// explained fails the test unless the explanation of the task has the reason, and a sentence that contains the text.
func explained(t *testing.T, s *scheduler.Scheduler, id int64, want report.Reason, text string) {
	t.Helper()
	got, err := s.Explain(t.Context(), delaytask.ID(id))
	if err != nil || got.Reason != want || !strings.Contains(got.Text, text) || got.Task.ID != id {
		t.Errorf("got %s %q, %v; want %s with %q", got.Reason, got.Text, err, want, text)
	}
}

func TestExplainNamesTheFirstHurdle(t *testing.T) {
	t.Parallel()
	s := byHand(t)
	var leased int64
	err := s.Register("t", processor.Func(func(_ context.Context, task *delaytask.Task) error {
		leased = task.ID
		explained(t, s.Scheduler, task.ID, report.ReasonLeased, "until 2026-05-04T12:01:15.000Z")
		return errors.New("no answer")
	}))
	servertest.OK(t, err)
	id := save(t, s, "t", time.Minute)
	s.Advance(0)
	explained(t, s.Scheduler, id, report.ReasonNotDue, "It is due at 2026-05-04T12:01:00.000Z")
	servertest.OK(t, s.Pause(t.Context(), "t"))
	explained(t, s.Scheduler, id, report.ReasonNotDue, "The tag t is paused.")
	if runs := s.Advance(time.Minute); len(runs) != 0 {
		t.Errorf("a paused tag ran: %v", runs)
	}
	explained(t, s.Scheduler, id, report.ReasonPaused, "paused")
	servertest.OK(t, s.Resume(t.Context(), "t"))
	explained(t, s.Scheduler, id, report.ReasonWaiting, "due since 2026-05-04T12:01:00.000Z")
	s.Advance(0)
	if leased != id {
		t.Fatal("the task did not run")
	}
	explained(t, s.Scheduler, id, report.ReasonRetry, "Attempt 1 failed (no answer)")
}

func TestExplainSaysWhatBecameOfATask(t *testing.T) {
	t.Parallel()
	s := byHand(t, "ok")
	fail := func(context.Context, *delaytask.Task) error {
		return processor.Permanent(errors.New("no such account"))
	}
	servertest.OK(t, s.Register("bad", processor.Func(fail)))
	ids := map[string]int64{}
	for _, tag := range []string{"ok", "bad", "orphan", "cancelled"} {
		ids[tag] = save(t, s, tag, 0)
	}
	if _, err := s.Cancel(t.Context(), delaytask.ID(ids["cancelled"])); err != nil {
		t.Fatal(err)
	}
	s.Advance(0)
	explained(t, s.Scheduler, ids["ok"], report.ReasonFinished,
		"completed at 2026-05-04T12:00:00.000Z, in attempt 1")
	explained(t, s.Scheduler, ids["bad"], report.ReasonFinished, "no such account")
	explained(t, s.Scheduler, ids["cancelled"], report.ReasonFinished, "cancelled at 2026-05-04T12:00:00.000Z")
	explained(t, s.Scheduler, ids["orphan"], report.ReasonUnserved, "No live node serves the tag orphan.")
}

func TestExplainSaysThatALeaseIsOver(t *testing.T) {
	t.Parallel()
	s, d := embedded(t) // not started, so it rescues nothing
	id := save(t, s, "t", 0)
	servertest.Exec(t, d.DSN, "UPDATE delay_task_message SET status = 3, attempt = 1, process = 10, claim = 1,"+
		" due_time = '2026-01-02 03:04:05.000000' WHERE id = ?", id)
	explained(t, s, id, report.ReasonLeaseOver, "The lease of 000000000000000a:1 ended at 2026-01-02T03:04:05.000Z")
}

func TestExplainSaysThatALeaseIsAheadOfTheClock(t *testing.T) {
	t.Parallel()
	s, d := embedded(t)
	id := save(t, s, "t", 0)
	servertest.Exec(t, d.DSN, "UPDATE delay_task_message SET status = 3, attempt = 1, process = 10, claim = 1,"+
		" due_time = '2996-01-02 03:04:05.000000' WHERE id = ?", id)
	explained(t, s, id, report.ReasonLeaseAhead, "The lease of 000000000000000a:1 lasts until 2996-01-02T03:04:05.000Z")
}

func TestExplainSaysThatAnotherTransactionHoldsTheRow(t *testing.T) {
	t.Parallel()
	dbtest.MySQLs(t, func(t *testing.T, d dbtest.Database) {
		s := open(t, d)
		if err := s.Pause(t.Context(), "t"); err != nil { // so that it is not claimed before it is locked
			t.Fatal(err)
		}
		start(t, s, "t", nothing)
		serving(t, s, "t")
		id := save(t, s, "t", 0)
		tx := begin(t, d)
		_, err := tx.ExecContext(t.Context(), "SELECT id FROM delay_task_message WHERE id = ? FOR UPDATE", id)
		servertest.OK(t, err)
		explained(t, s, id, report.ReasonPaused, "The tag t is paused. Its row is locked by another transaction.")
		servertest.OK(t, s.Resume(t.Context(), "t"))
		explained(t, s, id, report.ReasonLocked, "Its row is locked by another transaction.")
	})
}

func TestACopyThatStartsPausedRunsNothing(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, d dbtest.Database) {
		t.Parallel()
		ctx, before := t.Context(), open(t, d)
		for _, tag := range []string{"known", "resumed"} {
			save(t, before, tag, 0)
		}
		_, err := before.SaveSchedule(ctx, "s", delaytask.Every(time.Second), "ticks", nil)
		servertest.OK(t, err)

		ran := make(chan string, 10)
		run := processor.Func(func(_ context.Context, task *delaytask.Task) error {
			ran <- task.Tag
			return nil
		})
		s := open(t, d, func(c *scheduler.Config) { c.StartPaused = true })
		for _, tag := range []string{"known", "resumed", "ticks", "registered"} {
			servertest.OK(t, s.Register(tag, run))
		}
		servertest.OK(t, s.Start(ctx))
		save(t, s, "registered", 0)
		if tasks, err := s.Pop(ctx, "known", delaytask.PopWait(0)); len(tasks) != 0 || err != nil {
			t.Errorf("popped %v, %v", tasks, err)
		}
		states, err := s.Tags(ctx)
		servertest.OK(t, err)
		var paused []string
		for _, tag := range states {
			if tag.Paused && strings.Contains(tag.Reason, "start_paused") {
				paused = append(paused, tag.Tag)
			}
		}
		if want := []string{"known", "registered", "resumed", "ticks"}; !slices.Equal(paused, want) {
			t.Errorf("paused are %v, want %v", paused, want)
		}
		servertest.OK(t, s.Resume(ctx, "resumed"))
		if tag := <-ran; tag != "resumed" {
			t.Errorf("%s has run", tag)
		}
	})
}

func TestStatsOfVeryManyTagsAreBounded(t *testing.T) {
	t.Parallel()
	tags := make([]string, 600)
	for i := range tags {
		tags[i] = fmt.Sprintf("t%03d", i)
	}
	s := byHand(t, tags...)
	for _, tag := range tags {
		save(t, s, tag, 0)
	}
	s.Advance(time.Minute)
	stats, err := s.Stats(t.Context())
	if err != nil || len(stats) != len(tags) {
		t.Fatalf("%d tags, %v", len(stats), err)
	}
	late := 0
	for _, of := range stats {
		if of.Counts[delaytask.Completed] != 1 {
			t.Errorf("%+v", of)
		}
		late += of.Lateness.Samples
	}
	if late != 500 || stats[499].Lateness.Samples != 1 {
		t.Errorf("%d tags have a lateness, want the first 500", late)
	}
}
