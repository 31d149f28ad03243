package decide

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// backfill returns the world of a backfill of the five minutes from midnight on, which begins ten minutes later.
func backfill(t *testing.T, atOnce int) *world {
	t.Helper()
	parent := begin(t, row.Schedule{}, everyMinute).until(10*time.Minute + 30*time.Second)
	d, err := Backfill(parent.state(), 7, midnight, midnight.Add(4*time.Minute), atOnce)
	if err != nil {
		t.Fatal(err)
	}
	child := *parent
	child.s, child.history, child.tasks = row.Schedule{}, nil, map[int64]*row.Row{}
	if child.spec, err = spec.ParseText(d.Schedule.Spec); err != nil {
		t.Fatal(err)
	}
	child.apply(d)
	return &child
}

func TestABackfillThatIsPausedGoesOnWhereItWas(t *testing.T) {
	w := backfill(t, 1)
	w.until(10*time.Minute + 31500*time.Millisecond)
	w.do(Pause(w.state(), "the shop is closed")).until(20 * time.Minute)
	w.wants("00:00:00 completed backfill at 00:10:30", "00:01:00 completed backfill at 00:10:31")
	w.do(Resume(w.state())).until(21 * time.Minute)
	w.wants("00:00:00 completed backfill at 00:10:30", "00:01:00 completed backfill at 00:10:31",
		"00:02:00 completed backfill at 00:20:00", "00:03:00 completed backfill at 00:20:01",
		"00:04:00 completed backfill at 00:20:02")
	if w.s.State != row.ScheduleEnded {
		t.Errorf("%+v", w.s)
	}
}

// Of two runs at once the older one is not taken before the pause. Its tick is not to be lost.
func TestAPausedBackfillLosesNoRunThatWaits(t *testing.T) {
	w := backfill(t, 2)
	w.takes = time.Hour
	second := w.tasks[w.s.RunID]
	second.Due = w.now
	w.start(second)
	w.do(Pause(w.state(), ""))
	w.takes = time.Second
	w.until(10*time.Minute+40*time.Second).wants("00:00:00 completed backfill at 00:10:30",
		"00:01:00 open backfill")
	w.ends[second.ID] = w.now
	w.do(Resume(w.state())).until(12 * time.Minute)
	w.wants("00:00:00 completed backfill at 00:10:30", "00:01:00 completed backfill at 00:10:30",
		"00:02:00 completed backfill at 00:10:40", "00:03:00 completed backfill at 00:10:40",
		"00:04:00 completed backfill at 00:10:41")
}

func TestADeletedBackfillLeavesNoRunThatWaits(t *testing.T) {
	w := backfill(t, 2)
	second := w.tasks[w.s.RunID]
	w.start(second)
	d, err := Delete(w.state())
	if err != nil || len(d.Changes) != 1 || d.Changes[0].ID == second.ID || d.Write != row.WriteDelete {
		t.Errorf("%+v %v", d, err)
	}
}

func TestABackfillIsNeitherResetNorEdited(t *testing.T) {
	st := backfill(t, 1).state()
	to := st.Schedule
	to.Tag = "other"
	_, edited := Edit(st, to, st.Spec)
	_, reset := Reset(st)
	for _, err := range []error{edited, reset} {
		if !errors.Is(err, delaytask.ErrScheduleState) || !strings.Contains(err.Error(), "delete it") {
			t.Error(err)
		}
	}
}
