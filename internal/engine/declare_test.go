package engine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/plan"
	"github.com/delaytask/delaytask/internal/schedules/spec"
	"github.com/delaytask/delaytask/internal/store"
)

// version returns a started engine of a program of a revision that declares a schedule for each name, with the line.
func (w *world) version(revision int, line string, names ...string) *Engine {
	w.Helper()
	return w.versionOn(w.store, revision, line, names...)
}

func (w *world) versionOn(on store.Store, revision int, line string, names ...string) *Engine {
	w.Helper()
	e := w.idle(on, serving{"a": nothing})
	set := plan.Set{Owner: "app", Revision: row.Time(revision), Schedules: map[string]plan.Declared{}}
	sp, err := spec.Parse(delaytask.Spec{Lines: []string{line}})
	w.must(err)
	for _, name := range names {
		save, err := request.NewSchedule(name, delaytask.Spec{}, "a", "", request.Limits{})
		w.must(err)
		set.Schedules[name] = plan.Declared{Schedule: plan.Define(e.NewSchedule(&save), sp), Spec: sp}
	}
	e.Declare(set)
	w.must(e.Start(w.Context()))
	return e
}

func (w *world) leaves(e *Engine) {
	w.Helper()
	w.must(e.Stop(w.Context()))
}

// wantStored compares the stored schedules: name, spec, and state where it is not active.
func (w *world) wantStored(want ...string) {
	w.Helper()
	found, _, err := w.store.Schedules(w.Context(), row.ScheduleFilter{Limit: 100})
	w.must(err)
	var got []string
	for _, s := range found {
		line := s.Name + " " + s.Spec
		if s.State != row.ScheduleActive {
			line += " " + s.State.String()
		}
		got = append(got, line)
	}
	if !slices.Equal(got, want) {
		w.Errorf("stored:\n got %q\nwant %q", got, want)
	}
}

func TestTheNewestLiveRevisionSaysWhatIsStored(t *testing.T) {
	inBubble(t, func(w *world) {
		old := w.version(1, "0 1 * * *", "kept", "removed")
		time.Sleep(5 * time.Second)
		w.wantStored("kept 0 1 * * *", "removed 0 1 * * *")

		// A deployment: both versions live. The new one changes definitions, and retires nothing yet.
		fresh := w.version(2, "0 2 * * *", "added", "kept")
		time.Sleep(5 * time.Minute)
		w.wantStored("added 0 2 * * *", "kept 0 2 * * *", "removed 0 1 * * *")

		// The old one starts again and again.
		for range 5 {
			w.leaves(old)
			old = w.version(1, "0 1 * * *", "kept", "removed")
			time.Sleep(20 * time.Second)
		}
		w.wantStored("added 0 2 * * *", "kept 0 2 * * *", "removed 0 1 * * *")

		// It is gone for good.
		w.leaves(old)
		time.Sleep(5 * time.Minute)
		w.wantStored("added 0 2 * * *", "kept 0 2 * * *", "removed 0 1 * * * retired")

		// A rollback.
		w.version(1, "0 1 * * *", "kept", "removed")
		w.leaves(fresh)
		time.Sleep(5 * time.Minute)
		w.wantStored("added 0 2 * * * retired", "kept 0 1 * * *", "removed 0 1 * * *")
		w.setClock(31 * 24 * time.Hour)
		time.Sleep(5 * time.Minute)
		w.wantStored("kept 0 1 * * *", "removed 0 1 * * *")
	})
}

// Of two programs without a revision none is known to be the newer one, also when an old one starts again.
func TestProgramsWithoutARevisionChangeWhatAllDeclareAndRetireNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		old := w.version(0, "0 1 * * *", "kept", "removed")
		time.Sleep(5 * time.Second)
		w.wantStored("kept 0 1 * * *", "removed 0 1 * * *")

		w.version(0, "0 2 * * *", "added", "kept")
		time.Sleep(5 * time.Minute)
		w.wantStored("added 0 2 * * *", "kept 0 1 * * *", "removed 0 1 * * *")

		w.leaves(old)
		time.Sleep(10 * time.Second)
		w.wantStored("added 0 2 * * *", "kept 0 2 * * *", "removed 0 1 * * *")
		old = w.version(0, "0 1 * * *", "kept", "removed")
		time.Sleep(5 * time.Minute)
		w.leaves(old)
		time.Sleep(time.Hour)
		w.wantStored("added 0 2 * * *", "kept 0 2 * * *", "removed 0 1 * * *")

		// A program whose revision is known goes before.
		known := w.version(1, "0 3 * * *", "kept")
		time.Sleep(5 * time.Minute)
		w.wantStored("added 0 2 * * *", "kept 0 3 * * *", "removed 0 1 * * *")
		w.leaves(known)
		time.Sleep(2 * time.Minute)
		w.wantStored("added 0 2 * * *", "kept 0 2 * * *", "removed 0 1 * * *")
	})
}

func TestTwoSetsOfOneRevisionStoreNothing(t *testing.T) {
	inBubble(t, func(w *world) {
		w.version(1, "0 1 * * *", "a")
		time.Sleep(5 * time.Second)
		w.version(1, "0 2 * * *", "a", "b")
		time.Sleep(10 * time.Minute)
		w.wantStored("a 0 1 * * *")
	})
}

func TestARetiredScheduleComesBackAsItWas(t *testing.T) {
	inBubble(t, func(w *world) {
		e := w.version(1, "@every 10m", "a", "b")
		time.Sleep(15 * time.Minute)
		_, err := e.Schedules().Change(w.Context(), "a", pauseFor("holidays"))
		w.must(err)
		w.leaves(e)
		e = w.version(2, "@every 10m")
		time.Sleep(25 * time.Minute)
		w.wantStored("a @every 10m retired", "b @every 10m retired")
		w.leaves(e)
		w.version(3, "@every 10m", "a", "b")
		time.Sleep(11 * time.Minute)
		w.wantStored("a @every 10m paused", "b @every 10m")
		w.wantHistory("a", "completed tick")
		w.wantHistory("b", "completed tick", "completed tick")
	})
}

func TestALargeSetIsStoredOnceAndThenNotWritten(t *testing.T) {
	inBubble(t, func(w *world) {
		var names []string
		for i := range 1000 {
			names = append(names, fmt.Sprintf("job-%03d", i))
		}
		w.version(1, "0 1 1 1 *", names...)
		time.Sleep(2 * time.Second)
		versions := func() (sum int64) {
			found, _, err := w.store.Schedules(w.Context(), row.ScheduleFilter{Limit: 1000})
			w.must(err)
			if len(found) != 1000 {
				w.Fatalf("%d are stored", len(found))
			}
			for _, s := range found {
				sum += s.Version
			}
			return sum
		}
		before := versions()
		time.Sleep(10 * time.Minute)
		if after := versions(); after != before {
			w.Errorf("%d writes", after-before)
		}
	})
}

// A pass over it takes 3 reads. There would be 20 passes if each minute had one.
func TestALargeSetIsNotReadEachMinute(t *testing.T) {
	inBubble(t, func(w *world) {
		var names []string
		for i := range 2000 {
			names = append(names, fmt.Sprintf("job-%04d", i))
		}
		counted := &countsReads{Store: w.store, reads: map[string]int{}}
		w.versionOn(counted, 1, "0 1 1 1 *", names...)
		time.Sleep(3 * time.Minute)
		counted.take()
		time.Sleep(20 * time.Minute)
		if n := counted.take()["of an owner"]; n < 3*8 || n > 3*11 {
			w.Errorf("%d reads", n)
		}
	})
}

// The old process goes a second after the new one has compared the table.
func TestAScheduleIsRetiredWithinItsMinute(t *testing.T) {
	inBubble(t, func(w *world) {
		old := w.version(1, "0 1 * * *", "kept", "removed")
		time.Sleep(5 * time.Second)
		w.version(2, "0 1 * * *", "kept")
		time.Sleep(5 * time.Second)
		w.leaves(old)
		time.Sleep(50 * time.Second)
		w.wantStored("kept 0 1 * * *", "removed 0 1 * * *")
		time.Sleep(20 * time.Second)
		w.wantStored("kept 0 1 * * *", "removed 0 1 * * * retired")
	})
}
