package documents

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/delaytasktest"
	"github.com/delaytask/delaytask/internal/testkit/servertest"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/scheduler"
)

type report struct{ Shop string }

// reports keeps the spans that reports were built of.
type reports chan [2]time.Time

func (r reports) Build(_ context.Context, shop string, after, until time.Time) error {
	if shop != "north" {
		return errors.New("no such shop")
	}
	r <- [2]time.Time{after, until}
	return nil
}

func TestANightlyReportIsDeclared(t *testing.T) {
	t.Parallel()
	ctx, tasks := t.Context(), servertest.Open(t, embedded(t), scheduler.Config{})
	reports := make(reports, 100)
	declare := func() error {
		var BuildReport = processor.NewKind[report]("report.build")

		err := BuildReport.Process(tasks, func(ctx context.Context, task *delaytask.Task, r report) error {
			return reports.Build(ctx, r.Shop, task.Schedule.LastSuccess, task.Schedule.Tick)
		})
		if err != nil {
			return err
		}
		nightly := delaytask.Cron("30 2 * * *", "Europe/Berlin")
		err = BuildReport.Every(tasks, "report.nightly", nightly, report{Shop: "north"},
			delaytask.WithStartWithin(6*time.Hour), delaytask.WithPauseAfter(3))
		return err
	}
	servertest.OK(t, declare())
	servertest.OK(t, tasks.Start(ctx))
	trigger := func() error {
		_, err := tasks.TriggerSchedule(ctx, "report.nightly", false) // ErrScheduleBusy while a run executes
		return err
	}
	servertest.Eventually(t, "it is stored", func() bool {
		err := trigger()
		if !errors.Is(err, delaytask.ErrScheduleNotFound) {
			servertest.OK(t, err)
		}
		return err == nil
	})
	servertest.Receive(t, reports, "the report is built")

	backfill := func(from, to time.Time) error {
		name, err := tasks.Backfill(ctx, "report.nightly", from, to, 1) // one at a time
		if err == nil && name == "" {
			t.Error("no name")
		}
		return err
	}
	week := time.Date(2026, 10, 20, 0, 0, 0, 0, time.UTC)
	servertest.OK(t, backfill(week, week.AddDate(0, 0, 7)))
	before := time.Time{}
	for want := range 7 { // nights, and one is an hour longer
		built := servertest.Receive(t, reports, "a night is built")
		got := built[1].In(berlin(t))
		if got.Day() != 20+want || got.Format("15:04") != "02:30" || !built[0].Equal(before) {
			t.Errorf("report %d is of %v, after %v, want after %v", want, got, built[0], before)
		}
		before = built[1]
	}
	var written bytes.Buffer
	log := slog.New(slog.NewTextHandler(&written, nil))
	history := func() error {
		ticks, err := tasks.ScheduleTicks(ctx, "report.nightly", time.Time{}, 10) // the newest first
		for _, tick := range ticks {
			log.Info("tick", "at", tick.Tick, "outcome", tick.Outcome, "why", tick.Note)
		}
		return err
	}
	if err := history(); err != nil || !strings.Contains(written.String(), "outcome=") {
		t.Error(&written, err)
	}
	_, err := tasks.SaveSchedule(ctx, "report.nightly", delaytask.Every(time.Hour), "report.build", nil)
	if !errors.Is(err, delaytask.ErrScheduleOwned) {
		t.Error(err)
	}
}

func TestAnOutageIsSimulated(t *testing.T) {
	t.Parallel()
	start := time.Date(2027, 3, 27, 12, 0, 0, 0, berlin(t))
	s := delaytasktest.New(t, delaytasktest.StartAt(start))
	var ran []string
	servertest.OK(t, s.Register("report.build", processor.Func(func(_ context.Context, task *delaytask.Task) error {
		ran = append(ran, task.Schedule.Tick.In(berlin(t)).Format("02 15:04 ")+string(task.Schedule.Cause))
		return nil
	})))
	nightly := delaytask.Cron("30 2 * * *", "Europe/Berlin")
	servertest.OK(t, s.DeclareSchedule("report.nightly", nightly, "report.build", nil))
	s.Advance(24 * time.Hour)    // runs the ticks of a day
	s.Outage(7 * 24 * time.Hour) // no process lives
	s.Advance(time.Second)       // the latest tick runs, late
	if want := []string{"28 03:00 tick", "04 02:30 late"}; !slices.Equal(ran, want) {
		t.Errorf("it ran %q, want %q", ran, want)
	}
}

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	servertest.OK(t, err)
	return zone
}

func TestRecipesOfSchedules(t *testing.T) {
	t.Parallel()
	poll := delaytask.Every(5 * time.Minute) // and the default, WithOverlap(delaytask.OverlapSkip)
	monthEnd := delaytask.Cron("0 18 L * *", "Europe/Berlin")
	business := delaytask.Cron("0 9 * * MON-FRI", "Europe/Berlin").Except("2027-12-24", "* * 25,26 12 *")
	for want, spec := range map[string]delaytask.Spec{
		"12-22 00:05 12-22 00:10": poll, "12-31 18:00 01-31 18:00": monthEnd, "12-22 09:00 12-23 09:00": business,
	} {
		after := time.Date(2027, 12, 22, 0, 0, 0, 0, berlin(t))
		ticks, warnings, err := scheduler.Preview(spec, after, 3)
		if err != nil || len(ticks) != 3 || len(warnings) > 0 {
			t.Fatal(ticks, warnings, err)
		}
		const layout = "01-02 15:04"
		got := ticks[0].Time.In(berlin(t)).Format(layout) + " " + ticks[1].Time.In(berlin(t)).Format(layout)
		if got != want {
			t.Errorf("it ticks at %s, want %s", got, want)
		}
		if last := ticks[2].Time.Day(); spec.Zone != "" && len(spec.Lines) > 1 && last != 27 {
			t.Errorf("the day after the holidays is %d", last)
		}
	}
}

type tenant struct{ ID, Zone string }

func TestEachTenantHasASchedule(t *testing.T) {
	t.Parallel()
	ctx, tasks := t.Context(), servertest.Open(t, embedded(t), scheduler.Config{})
	add := func(tenant tenant) error {
		when := delaytask.Cron("0 6 1 * *", tenant.Zone)
		_, err := tasks.SaveSchedule(ctx, "invoice/"+tenant.ID, when, "invoice.send", tenant.ID,
			delaytask.WithJitter(30*time.Minute)) // spreads them, each always by the same
		return err
	}
	servertest.OK(t, tasks.Start(ctx))
	for range 2 { // the second time writes nothing
		servertest.OK(t, add(tenant{"7", "Asia/Tokyo"}))
		servertest.OK(t, add(tenant{"8", "America/New_York"}))
	}
	page, err := tasks.ListSchedules(ctx, delaytask.ScheduleFilter{Prefix: "invoice/"})
	servertest.OK(t, err)
	var names []string
	for _, s := range page.Schedules {
		names = append(names, s.Name)
		if late := s.NextDue.Sub(s.NextTick); s.Version != 0 || late <= 0 || late >= 30*time.Minute {
			t.Errorf("%s has version %d, and is %v after its tick", s.Name, s.Version, late)
		}
	}
	if !slices.Equal(names, []string{"invoice/7", "invoice/8"}) {
		t.Errorf("there are %q", names)
	}
}
