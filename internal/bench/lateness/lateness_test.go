package lateness

import (
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/testkit/dbtest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	_ "github.com/delaytask/delaytask/sqlite"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(dbtest.WithServers(m)) }

var due = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func completed(id int64) delaytask.TaskRow {
	return delaytask.TaskRow{ID: id, Status: delaytask.Completed, Expected: due}
}

func TestJudgeSeesWhatIsWrong(t *testing.T) {
	unfinished := delaytask.TaskRow{ID: 5, Status: delaytask.Executing, Expected: due}
	tasks := []delaytask.TaskRow{completed(1), completed(2), completed(3), completed(4), unfinished}
	seen := NewStarts(len(tasks))
	seen.Add(1, due.Add(2*time.Millisecond))
	seen.Add(2, due.Add(-time.Microsecond)) // early
	seen.Add(3, due.Add(time.Second))       // the second start, noted first
	seen.Add(3, due.Add(time.Millisecond))
	seen.Add(5, due) // did not end; and 4 never started
	seen.Add(5, due.Add(time.Hour))

	j := seen.Judge(tasks)
	if j.Lost != 2 || j.Extra != 2 {
		t.Errorf("%d tasks were lost, want 4 and 5, with %d starts too many, want one of 3 and one of 5", j.Lost,
			j.Extra)
	}
	if j.Early != 1 {
		t.Errorf("%d tasks were early, want only 2", j.Early)
	}
	if len(j.Starts) != 4 || Percentile(j.Starts, 100) != 2*time.Millisecond {
		t.Errorf("lateness %v, want the first starts of four tasks", j.Starts)
	}
}

func TestStartsAreFullWithTheLastNewTask(t *testing.T) {
	seen := NewStarts(2)
	seen.Add(1, due)
	seen.Add(1, due)
	select {
	case <-seen.full:
		t.Fatal("full with one task that started twice")
	default:
	}
	if err := seen.Wait(t.Context(), 0); err == nil {
		t.Error("the wait does not end with its time")
	}
	seen.Add(2, due)
	seen.Add(2, due)
	if err := seen.Wait(t.Context(), time.Hour); err != nil {
		t.Error(err)
	}
}

func TestPercentileIsAMeasuredFigure(t *testing.T) {
	var l []time.Duration
	for i := range 200 {
		l = append(l, time.Duration(200-i))
	}
	for p, want := range map[float64]time.Duration{50: 100, 99: 198, 99.5: 199, 99.9: 200, 100: 200} {
		if got := Percentile(l, p); got != want {
			t.Errorf("p%v is %d, want %d", p, got, want)
		}
	}
	many := make([]time.Duration, 41_000)
	for i := range many {
		many[i] = time.Duration(i + 1)
	}
	if got := Percentile(many, 99.9); got != 40_959 {
		t.Errorf("p99.9 of 41,000 is %d", got)
	}
	if got := Percentile(nil, 99); got != 0 {
		t.Errorf("p99 of nothing is %v", got)
	}
}

func TestAnotherClockIsSeen(t *testing.T) {
	dbtest.MySQLs(t, func(t *testing.T, db dbtest.Database) {
		separator := "?"
		if strings.Contains(db.DSN, "?") {
			separator = "&"
		}
		// Stands still in 2026.
		for parameter, want := range map[string]error{"": nil, "timestamp=1772366400": ErrOtherClock} {
			pool, err := sql.Open("mysql", db.DSN+separator+parameter)
			servertest.OK(t, err)
			if err := ClockAhead(t.Context(), pool, 0); !errors.Is(err, want) {
				t.Errorf("with %q: %v, want %v", parameter, err, want)
			}
			if err := ClockAhead(t.Context(), pool, time.Second); !errors.Is(err, ErrOtherClock) {
				t.Errorf("with %q, ahead by a second: %v", parameter, err)
			}
			if err := pool.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
