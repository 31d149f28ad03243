package forecast

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
	"github.com/delaytask/delaytask/internal/store/memstore"
	"github.com/delaytask/delaytask/report"
)

// estimating is a store that tells about how many rows there are: twice as many.
type estimating struct {
	*memstore.Store
	ranges int
	slow   bool // counts take too long
}

func (s *estimating) EstimateDue(ctx context.Context, g row.DueGrid) ([]row.DueCount, bool, error) {
	counts, _, err := s.Store.CountDue(ctx, g, 1e6, 0)
	s.ranges += len(g.Tags) * (g.Steps + 1)
	for i := range counts {
		counts[i].Rows *= 2
	}
	return counts, true, err
}

func (s *estimating) CountDue(ctx context.Context, g row.DueGrid, most int, limit time.Duration) (
	[]row.DueCount, bool, error) {
	if s.slow {
		return nil, false, nil
	}
	return s.Store.CountDue(ctx, g, most, limit)
}

var now = row.At(time.Date(2027, 3, 1, 14, 3, 27, 0, time.UTC))

// fill saves rows of a tag that are due one each d from a moment on.
func fill(t *testing.T, s *memstore.Store, tag string, n int, from row.Time, d time.Duration) {
	t.Helper()
	rows := make([]row.Row, n)
	for i := range rows {
		due := from.Add(time.Duration(i) * d)
		rows[i] = row.Row{ID: nextID(), Tag: tag, TTR: time.Minute, Expected: due, Due: due}
	}
	if err := s.Insert(t.Context(), nil, rows); err != nil {
		t.Fatal(err)
	}
}

var lastID int64

func nextID() int64 { lastID++; return lastID }

func plan(t *testing.T, s *memstore.Store, of row.Schedule, history ...row.ScheduleRun) {
	t.Helper()
	of.ID, of.Look, of.TTR = nextID(), of.Next, time.Minute
	for i := range history {
		history[i].ScheduleID = of.ID
	}
	applied, err := s.Decide(t.Context(), []row.Decision{{Write: row.WriteNew, Schedule: of, New: history}})
	if err != nil || !applied {
		t.Fatalf("%v, %v", applied, err)
	}
}

func forecastOf(t *testing.T, s Source, tag string, span time.Duration, b bounds) report.Forecast {
	t.Helper()
	step, err := report.ForecastStep(span)
	if err != nil {
		t.Fatal(err)
	}
	f, err := read(t.Context(), s, Query{Tag: tag, Now: now, Span: span, Step: step}, b)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func show(d report.DueTasks) string {
	sign := map[report.Precision]string{report.About: "≈", report.AtLeast: "≥"}[d.Precision]
	return fmt.Sprintf("%s%d/%d", sign, d.Tasks, d.Ticks)
}

// shows compares what is overdue, what falls due in all, and in single steps.
func shows(t *testing.T, of report.TagForecast, overdue, sum string, steps map[int]string) {
	t.Helper()
	if show(of.Overdue) != overdue || show(of.Sum()) != sum {
		t.Errorf("tag %q: %s overdue and %s due, want %s and %s", of.Tag, show(of.Overdue), show(of.Sum()), overdue,
			sum)
	}
	for i, want := range steps {
		if got := show(of.Due[i]); got != want {
			t.Errorf("tag %q, step %d: %s, want %s", of.Tag, i, got, want)
		}
	}
}

func TestOverdueTasksComeFirstAndTicksAreInTheSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock stands while it works
		s := memstore.New()
		fill(t, s, "mail", 5, now-5, 0)
		fill(t, s, "mail", 60, now, time.Minute)
		fill(t, s, "later", 3, now.Add(time.Hour), time.Minute)
		every := row.Schedule{Name: "s", Tag: "report", Spec: "@every 30s", Next: now.Add(time.Minute)}
		plan(t, s, every)
		last := row.Schedule{Name: "last", Tag: "mail", Spec: "* * * * *", Next: now - 1, MaxRuns: 10, Runs: 7}
		plan(t, s, last)
		paused := every
		paused.Name, paused.State = "paused", row.SchedulePaused
		plan(t, s, paused)

		f := forecastOf(t, s, "", report.ForecastHour, usual)
		if f.At != now.Std() || f.Start.Second() != 0 || f.Step != time.Minute || f.Steps != 60 || len(f.Tags) != 2 {
			t.Fatalf("got %+v", f)
		}
		shows(t, f.Tags[0], "5/0", "63/3", map[int]string{0: "1/0", 1: "2/1", 3: "2/1", 4: "1/0", 59: "1/0"})
		shows(t, f.Tags[1], "0/0", "117/117", map[int]string{0: "0/0", 1: "1/1", 2: "2/2", 59: "2/2"})
		shows(t, f.Total(), "5/0", "180/120", nil)
		if one := forecastOf(t, s, "report", report.ForecastDay, usual); len(one.Tags) != 1 || one.Steps != 96 {
			t.Errorf("got %+v", one)
		}
	})
}

func TestSmallTagsAreCountedAndLargeOnesEstimated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock stands while it works
		s := &estimating{Store: memstore.New()}
		fill(t, s.Store, "large", 590, now, 6*time.Second)
		fill(t, s.Store, "late", 1, now-1, 0)
		fill(t, s.Store, "late", 120, now, 30*time.Second)
		fill(t, s.Store, "small", 20, now, time.Minute)
		b := bounds{tags: 9, schedules: 9, rows: 100, ranges: 100}
		f := forecastOf(t, s, "", report.ForecastHour, b)
		shows(t, f.Tags[0], "0/0", "≈1180/0", map[int]string{10: "≈20/0"})
		shows(t, f.Tags[1], "1/0", "≈240/0", nil) // what is overdue is counted all the same
		shows(t, f.Tags[2], "0/0", "20/0", nil)
		shows(t, f.Total(), "1/0", "≈1440/0", nil)
		if s.ranges > 200 {
			t.Errorf("%d ranges were estimated, want 3 * 2 and at most 100", s.ranges)
		}
		s.slow = true
		shows(t, forecastOf(t, s, "small", report.ForecastHour, b).Tags[0], "≈0/0", "≈40/0", nil)
	})
}

func TestWithoutEstimatesLargeCellsAreCountedToABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock stands while it works
		s := memstore.New()
		fill(t, s, "burst", 500, now.Add(10*time.Minute), 0)
		fill(t, s, "burst", 30, now-1, 0)
		fill(t, s, "small", 10, now, time.Minute)
		f := forecastOf(t, s, "", report.ForecastHour, bounds{tags: 9, schedules: 9, capped: 2 * 61 * 2})
		if burst := f.Tags[0].Due[10]; burst.Precision != report.AtLeast || burst.Tasks < 100 || burst.Tasks > 250 {
			t.Errorf("got %+v of 500", burst)
		}
		shows(t, f.Tags[0], "30/0", show(f.Tags[0].Due[10]), map[int]string{9: "0/0"})
		shows(t, f.Tags[1], "0/0", "10/0", nil)
		if f = forecastOf(t, s, "", report.ForecastHour, usual); show(f.Tags[0].Due[10]) != "500/0" {
			t.Errorf("got %+v", f.Tags[0].Due[10])
		}
	})
}

func TestWhatIsLeftOutIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock stands while it works
		s := memstore.New()
		fill(t, s, "b", 1, now-2, 0)
		fill(t, s, "a", 1, now-1, 0)
		b := usual
		b.tags = 1
		f := forecastOf(t, s, "", report.ForecastHour, b)
		if !f.LeftOut || len(f.Tags) != 1 || f.Tags[0].Tag != "b" ||
			show(f.Total().Overdue) != "≥1/0" {
			t.Errorf("got %+v", f)
		}
		plan(t, s, row.Schedule{Name: "new", Tag: "c", Spec: "@some newer line", Next: now})
		f = forecastOf(t, s, "c", report.ForecastHour, usual)
		shows(t, f.Tags[0], "0/0", "≥0/0", nil)
	})
}

func TestATickThatIsPutOffIsCountedWhenItIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock stands while it works
		full := now - now%row.Time(time.Hour.Microseconds())
		s := row.Schedule{Name: "n", Spec: "@hourly", Jitter: time.Hour, Next: full}
		g := newReader(nil, Query{Now: s.Next, Span: time.Hour, Step: time.Minute}, usual).grid
		counts, complete := ticksOf(&s, nil, g.Cells()[1:])
		at := int(decide.Jitter(s.Name, s.Jitter).Minutes())
		if !complete || counts[at] != 1 || slices.Max(counts) != 1 || slices.Index(counts, 1) != at {
			t.Errorf("got %v, want a tick in %d", counts, at)
		}
	})
}

// Another definition has ticks before the skipped one. The last of the runs that are left comes a tick later.
func TestATickThatWasSkippedAheadIsNotCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock stands while it works
		s := memstore.New()
		minute := now.Add(33 * time.Second)
		of := row.Schedule{Name: "s", Tag: "report", Spec: "* * * * *", Next: minute, Last: minute.Add(2 * time.Minute)}
		skip := row.ScheduleRun{Tick: of.Last, Until: of.Last, Ticks: 1, Outcome: row.OutcomeSkipped}
		plan(t, s, of, skip)
		of.Name, of.Tag, of.MaxRuns = "last", "few", 3
		plan(t, s, of, skip)
		f := forecastOf(t, s, "", report.ForecastHour, usual)
		shows(t, f.Tags[0], "0/0", "3/3", map[int]string{1: "1/1", 2: "1/1", 3: "0/0", 4: "1/1", 5: "0/0"})
		shows(t, f.Tags[1], "0/0", "58/58", map[int]string{2: "1/1", 3: "0/0", 4: "1/1"})
	})
}

func TestEstimatesOfSeveralStepsAreSpreadByTheirLength(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // whose clock stands while it works
		g := newReader(nil, Query{Now: now, Span: time.Hour, Step: time.Minute}, usual).grid
		if got := spread(100, g.Cells()[1:4]); !slices.Equal(got, []int64{21, 39, 40}) {
			t.Errorf("got %v", got)
		}
		for tags, want := range map[int][2]int{0: {0, 120}, 20: {20, 120}, 85: {12, 12}, 400: {11, 2}, 5000: {0, 1}} {
			if fine, steps := resolution(tags, 120, 2500); [2]int{fine, steps} != want {
				t.Errorf("%d tags: %d by each step, the others by %d, want %v", tags, fine, steps, want)
			}
		}
	})
}

type counting struct {
	*memstore.Store
	statements int
}

func (s *counting) CountDue(ctx context.Context, g row.DueGrid, most int, limit time.Duration) (
	[]row.DueCount, bool, error) {
	s.statements++
	return s.Store.CountDue(ctx, g, most, limit)
}

// Tags with more rows in the same cells are counted further together.
func TestAlikeTagsShareStatements(t *testing.T) {
	s := &counting{Store: memstore.New()}
	const tags, perTag = 20, 2400
	for i := range tags {
		fill(t, s.Store, fmt.Sprint("t", i), perTag, now, 30*24*time.Hour/perTag)
	}
	b := usual
	b.capped = 60_000
	f := forecastOf(t, s, "", 30*24*time.Hour, b)
	if first := f.Tags[0].Due[0]; len(f.Tags) != tags || first.Tasks < 10 || s.statements > 4 {
		t.Errorf("%d tags, %+v, with %d statements", len(f.Tags), first, s.statements)
	}
}
