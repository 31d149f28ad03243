package overview

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/report"
)

// site is a store with a process whose state a test sets.
type site struct {
	*testing.T
	*memstore.Store
	clock   Clock
	hanging []Hanging
	apart   []string
	replica Replica
	locks   []Lock
	waiting []string // tags of which a range is locked
	denied  error
	reader  *Reader
}

func newSite(t *testing.T) *site {
	s := &site{T: t, Store: memstore.New()}
	s.reader = reader(t, s.Store, Process{
		Clock: func() Clock { return s.clock }, Hanging: func() []Hanging { return s.hanging },
		Apart: func() []string { return s.apart }, LockedTags: func() []string { return s.waiting },
		Locks:     func(context.Context) ([]Lock, error) { return s.locks, s.denied },
		Replica:   func(context.Context) (Replica, error) { return s.replica, nil },
		Retention: map[row.Status]time.Duration{row.Completed: time.Hour},
	})
	return s
}

// see returns what a viewer sees of a new reading.
func (s *site) see(f report.OverviewFilter) report.Overview {
	s.Helper()
	time.Sleep(keepForecast) // the longest that a part is kept, except for the last hour
	for _, token := range []string{"live", "other"} {
		s.beat(token)
	}
	found, err := s.reader.Snapshot(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return found.Overview(f)
}

// beat keeps a node alive that has joined.
func (s *site) beat(token string) {
	s.Helper()
	nodes, _, err := s.Nodes(s.Context())
	for _, n := range nodes {
		if n.Token == token && err == nil {
			_, err = s.Beat(s.Context(), n)
		}
	}
	if err != nil {
		s.Fatal(err)
	}
}

func (s *site) join(number int, token string, tags ...string) {
	s.Helper()
	n := row.Node{Number: number, Token: token, Name: "shop", PID: 7, Tags: tags}
	if joined, err := s.Join(s.Context(), n, time.Second); err != nil || !joined {
		s.Fatal(joined, err)
	}
}

func (s *site) save(tag string, status row.Status, due time.Duration, process int64, failure string) int64 {
	s.Helper()
	return insert(s.T, s.Store, row.Row{
		Tag: tag, Status: status, Due: at(s.Store, due), ErrorStack: failure,
		Executor: row.Executor{Process: process, Claim: process},
	})
}

func (s *site) update(id int64, from, to row.Status) {
	s.Helper()
	now := at(s.Store, 0)
	c := row.Change{ID: id, From: from, To: to, Due: now}
	if from != row.Pending {
		c.Version = 1
	}
	if n, err := s.Update(s.Context(), nil, []row.Change{c}); err != nil || n != 1 {
		s.Fatal(n, err)
	}
}

func (s *site) pause(tag string, paused bool) {
	s.Helper()
	if err := s.SetTag(s.Context(), row.TagState{Tag: tag, Paused: paused}); err != nil {
		s.Fatal(err)
	}
}

// count writes what a process has counted in the last minute that is over.
func (s *site) count(tag string, r row.Rollup) {
	s.Helper()
	r.Span, r.Tag, r.Node = row.SpanMinute, tag, "live"
	r.Begin = row.SpanMinute.Begin(at(s.Store, -time.Minute))
	if err := s.PutRollups(s.Context(), []row.Rollup{r}); err != nil {
		s.Fatal(err)
	}
}

// schedules stores two that tick every ten minutes, and others of which there is nothing to say.
func (s *site) schedules(change func(*row.Schedule, row.Time)) (end func()) {
	now, all := at(s.Store, 0), []row.Schedule{
		{Name: "-x"}, {Name: "y"}, {Name: "fine"},
		{Name: "rests", State: row.SchedulePaused, By: "ada", PauseAfter: 3, Failures: 3},
		{Name: "old", State: row.ScheduleRetired},
	}
	var made, gone []row.Decision
	for i := range all {
		of := &all[i]
		of.ID, of.Spec, of.Tag, of.Next = int64(i+1), "@every 10m", "a", now.Add(10*time.Minute)
		of.Overlap, of.Missed, of.Success = delaytask.OverlapSkip, delaytask.MissedOnce, now
		if i < 2 {
			change(of, now)
		}
		made = append(made, row.Decision{Write: row.WriteNew, Schedule: *of})
		gone = append(gone, row.Decision{Write: row.WriteDelete, Schedule: *of})
	}
	store := func(all []row.Decision) {
		if done, err := s.Decide(s.Context(), all); !done || err != nil {
			s.Fatal(done, err)
		}
	}
	store(made)
	return func() { store(gone) }
}

func codesOf(found []report.Finding) (codes []report.FindingCode) {
	for _, f := range found {
		codes = append(codes, f.Code)
	}
	return codes
}

func TestEachFindingAppearsAndVanishes(t *testing.T) {
	const boom = "dial 10.0.0.7:3306: refused\nstack"
	for want, tt := range map[report.FindingCode]struct {
		begin func(*site) (end func())
		check func(report.Finding) bool
	}{
		report.FindingUnserved: {func(s *site) func() {
			id := s.save("a", row.Pending, -time.Minute, 0, "")
			return func() { s.update(id, row.Pending, row.Cancelled) }
		}, func(f report.Finding) bool {
			return f.Tag == "a" && f.Number == 1 && !f.Since.IsZero() && f.Task > 0 &&
				strings.HasPrefix(f.Text, "1 task is overdue, and no live")
		}},
		report.FindingOverdue: {func(s *site) func() {
			s.join(1, "live", "a")
			first := s.save("a", row.Pending, -time.Minute, 0, "")
			second := s.save("a", row.Pending, -time.Hour, 0, "")
			return func() { s.update(first, row.Pending, row.Cancelled); s.update(second, row.Pending, row.Cancelled) }
		}, func(f report.Finding) bool {
			return f.Number == 2 && strings.Contains(f.Text, "1 process serves the tag, with 0 executing")
		}},
		report.FindingPausedOverdue: {func(s *site) func() {
			s.pause("-a", true)
			id := s.save("-a", row.Pending, -time.Minute, 0, "")
			return func() { s.pause("-a", false); s.update(id, row.Pending, row.Cancelled) }
		}, func(f report.Finding) bool { return f.Do == "delaytask resume -- -a" }},
		report.FindingFailing: {func(s *site) func() {
			for range 3 {
				s.save("a", row.Failed, -time.Minute, 0, boom)
			}
			s.save("a", row.Failed, -time.Minute, 0, "another")
			return func() { time.Sleep(failureSpan) }
		}, func(f report.Finding) bool {
			return f.Number == 4 && f.Error == "dial *: refused" && f.Group != "" &&
				strings.HasPrefix(f.Text, "4 tasks have failed within 10 min, most often: dial *")
		}},
		report.FindingRetrying: {func(s *site) func() {
			id := s.save("a", row.Pending, time.Hour, 0, boom)
			s.count("a", row.Rollup{Retried: 20, Completed: 19})
			time.Sleep(time.Minute) // the last hour is read once a minute
			return func() { s.update(id, row.Pending, row.Cancelled); time.Sleep(failureSpan + 2*time.Minute) }
		}, func(f report.Finding) bool { return f.Number == 20 && f.Group == "" }},
		report.FindingLeaseOver: {func(s *site) func() {
			id := s.save("a", row.Executing, -time.Minute, 9, "")
			return func() { s.update(id, row.Executing, row.Failed); time.Sleep(failureSpan) }
		}, func(f report.Finding) bool { return f.Number == 1 && f.Tag == "a" }},
		report.FindingNodeSilent: {func(s *site) func() {
			s.join(3, "000000000000dead", "a")
			id := s.save("a", row.Executing, time.Hour, 0xdead, "")
			time.Sleep(silentFor)
			return func() { s.update(id, row.Executing, row.Completed); time.Sleep(time.Minute) }
		}, func(f report.Finding) bool {
			return f.Node == report.NodeRef{Number: 3, Name: "shop"} && f.Number == 1 && !f.Since.IsZero()
		}},
		report.FindingPurgeBehind: {func(s *site) func() {
			id := s.save("a", row.Completed, -2*time.Hour, 0, "")
			return func() {
				n, _, err := s.Purge(s.Context(), row.Completed, []string{"a"}, at(s.Store, 0), 1)
				if n != 1 || err != nil {
					s.Fatal(id, n, err)
				}
			}
		}, func(f report.Finding) bool { return f.Tag == "a" }},
		report.FindingScheduleBehind: {func(s *site) func() {
			return s.schedules(func(of *row.Schedule, now row.Time) {
				of.Next, of.Success = now.Add(-time.Hour), now.Add(-2*time.Hour)
			})
		}, func(f report.Finding) bool {
			return f.Tag == "a" && f.Number == 2 && slices.Equal(f.Evidence.Schedules, []string{"-x", "y"}) &&
				f.Do == "delaytask schedule explain -- -x" && strings.HasSuffix(f.Text, "of the schedules -x, y")
		}},
		report.FindingSchedulePaused: {func(s *site) func() {
			return s.schedules(func(of *row.Schedule, now row.Time) {
				of.State, of.Since, of.PauseAfter, of.Failures = row.SchedulePaused, now.Add(-time.Hour), 3, 3
				of.Reason = "3 runs failed in a row: boom"
			})
		}, func(f report.Finding) bool {
			return strings.HasSuffix(f.Text, "-x, y; 3 runs failed in a row: boom") && !f.Since.IsZero()
		}},
		report.FindingScheduleUnsuccessful: {func(s *site) func() {
			return s.schedules(func(of *row.Schedule, now row.Time) {
				of.Next, of.Success = now.Add(5*time.Minute), now.Add(-time.Hour)
			})
		}, func(f report.Finding) bool { return f.Number == 2 && !f.Since.IsZero() }},
		report.FindingTwoDatabases: {func(s *site) func() {
			s.apart = []string{"a:3306:1", "b:3306:1"}
			return func() { s.apart = nil }
		}, func(f report.Finding) bool {
			return strings.Contains(f.Text, "(a:3306:1, b:3306:1)") && len(f.Evidence.Servers) == 2
		}},
		report.FindingReplica: {func(s *site) func() {
			s.replica = Replica{Source: "db1:3306", ReadOnly: true}
			return func() { s.replica = Replica{} }
		}, func(f report.Finding) bool { return strings.Contains(f.Text, "the changes of db1:3306:") }},
		report.FindingClockHeld: {func(s *site) func() {
			s.clock.Held = true
			return func() { s.clock.Held = false }
		}, nil},
		report.FindingClockWide: {func(s *site) func() {
			s.clock.Width = time.Second
			return func() { s.clock.Width = 0 }
		}, nil},
		report.FindingRowsLocked: {func(s *site) func() {
			s.locks = []Lock{{Thread: "42", Age: time.Minute, Rows: 5, Tasks: true}, {Age: time.Minute}, {Tasks: true}}
			return func() { s.locks = nil }
		}, func(f report.Finding) bool { return strings.HasSuffix(f.Do, "KILL 42") }},
		report.FindingHanging: {func(s *site) func() {
			s.hanging = []Hanging{{ID: 1, Tag: "a", Attempt: 2, Since: at(s.Store, 0), Stack: "main.f"}}
			return func() { s.hanging = nil }
		}, func(f report.Finding) bool { return f.Stack == "main.f" && f.Task == 1 }},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			if found := s.see(report.OverviewFilter{}); len(found.Attention) > 0 || len(found.Missing) > 0 {
				t.Fatalf("%s: before: %+v", want, found)
			}
			end := tt.begin(s)
			found := s.see(report.OverviewFilter{}).Attention
			if len(found) != 1 || found[0].Code != want || found[0].Do == "" || tt.check != nil && !tt.check(found[0]) {
				t.Fatalf("%s: found %+v", want, found)
			}
			end()
			if found := s.see(report.OverviewFilter{}); len(found.Attention) > 0 {
				t.Errorf("%s: afterwards: %+v", want, found.Attention)
			}
		})
	}
}

// MariaDB does not tell what a transaction has locked, and an account may not be allowed to ask who has.
func TestALockedRangeIsFoundByTheWritesThatWait(t *testing.T) {
	for want, lock := range map[string][]Lock{
		"rows of a are locked by another transaction, which holds up some of their tasks": nil,
		"connection 42 has a transaction open that locks 5 rows, which may be tasks, and holds up tasks of a": {
			{Thread: "42", Age: time.Minute, Rows: 5},
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t)
			s.locks, s.waiting = lock, []string{"a"}
			found := s.see(report.OverviewFilter{}).Attention
			if len(found) != 1 || found[0].Code != report.FindingRowsLocked || found[0].Text != want {
				t.Errorf("found %+v, want %q", found, want)
			}
		})
	}
}

func TestAViewerSeesItsTagsOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.join(1, "live", "mine", "theirs")
		for _, tag := range []string{"mine", "theirs"} {
			s.save(tag, row.Pending, -time.Minute, 0, "")
			s.save(tag, row.Pending, time.Minute, 0, "")
			s.save(tag, row.Executing, time.Hour, 0, "")
			s.save(tag, row.Failed, -time.Minute, 0, "boom")
			s.count(tag, row.Rollup{Completed: 2, Failed: 1, Late: row.Histogram{{Class: 9, N: 2}}, Max: time.Second})
		}
		s.pause("theirs", true)
		s.locks = []Lock{{Thread: "42", Age: time.Minute, Rows: 5, Tasks: true}}
		s.hanging = []Hanging{{ID: 1, Tag: "mine"}}
		all := s.see(report.OverviewFilter{})
		if len(all.Tags) != 2 || all.Totals.Executing.Tasks != 2 || all.Totals.Completed != 4 ||
			all.Series.Points[0].Completed != 4 || all.Tags[1].Tag != "theirs" || !all.Tags[1].Paused {
			t.Errorf("all: %+v", all)
		}
		if got, want := codesOf(all.Attention), []report.FindingCode{
			report.FindingRowsLocked, report.FindingOverdue, report.FindingHanging,
			report.FindingFailing, report.FindingFailing, report.FindingPausedOverdue,
		}; !slices.Equal(got, want) {
			t.Errorf("all: %v, want %v", got, want)
		}
		exactly := report.DueTasks{Tasks: 1, Precision: report.Exact}
		mine := s.see(report.OverviewFilter{Sees: func(tag string) bool { return tag == "mine" }})
		if o := mine.Totals; len(mine.Tags) != 1 || o.Executing != exactly || o.Overdue != exactly ||
			o.Completed != 2 || o.Failed != 1 || o.Nodes != 1 ||
			mine.Series.Points[0].Completed != 2 || mine.Series.Points[0].Started != 2 {
			t.Errorf("mine: %+v, %+v", o, mine.Series)
		}
		if of := mine.Tags[0]; of.Started != 2 || of.Max != time.Second || of.Counts[delaytask.Failed] != 1 ||
			len(of.LastHour) != report.OverviewSteps || len(of.Nodes) != 1 {
			t.Errorf("mine: %+v", of)
		}
		if got, want := codesOf(mine.Attention), []report.FindingCode{
			report.FindingOverdue, report.FindingFailing,
		}; !slices.Equal(got, want) || mine.Attention[1].Error != "boom" {
			t.Errorf("mine: %+v", mine.Attention)
		}
		few := s.see(report.OverviewFilter{MostTags: 1, MostFindings: 2})
		if len(few.Tags) != 1 || few.MoreTags != 1 || few.Totals.Executing.Tasks != 2 ||
			len(few.Attention) != 2 || few.MoreFindings < 2 || few.Attention[0].Code != report.FindingRowsLocked {
			t.Errorf("few: %+v", few)
		}
		blind := s.see(report.OverviewFilter{Errors: func(string) bool { return false }})
		for _, f := range blind.Attention {
			if f.Error != "" || strings.Contains(f.Text, "boom") {
				t.Errorf("without errors: %+v", f)
			}
		}
		none := s.see(report.OverviewFilter{Sees: func(string) bool { return false }})
		if len(none.Tags) > 0 || len(none.Attention) > 0 || len(none.Series.Points) > 0 ||
			none.Totals.Completed > 0 || none.Totals.Overdue.Tasks > 0 {
			t.Errorf("none: %+v", none)
		}
	})
}

// A missing privilege hides the locks alone.
func TestLocksThatMayNotBeReadAreMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t)
		s.denied = &row.Error{Class: row.ClassOperator, Err: errors.New("denied")}
		want := []report.MissingPart{{Part: report.PartLocks, Why: report.TroubleOperator}}
		if found := s.see(report.OverviewFilter{}); !slices.Equal(found.Missing, want) {
			t.Errorf("missing %+v, want %+v", found.Missing, want)
		}
	})
}
