package dashboard

import (
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/wire"
)

// schedulesPage is a list of schedules by name.
type schedulesPage struct {
	Prefix, Owner string
	Schedules     []listedSchedule
	First         bool   // no page is before it; only this one refreshes
	Next          string // the query of the next page
	Part          bool   // the user sees some tags only
	Deleted       bool   // the action before has deleted one
	Command       string
}

// listedSchedule is a schedule with what became of its newest run.
type listedSchedule struct {
	delaytask.Schedule
	Last    delaytask.Status // of its newest run; "" without one, or when its task is deleted
	Ticks   []upcoming
	Overdue bool
	Waits   bool // Overdue, but only until the run before has ended
}

// upcoming is a tick that is to come.
type upcoming struct {
	Local   string // in the zone of the schedule
	Due     time.Time
	Note    string // what a clock change does to it
	Dropped bool   // it does not run
}

const (
	schedulesOfPage = 50
	schedulesRead   = 100  // in one statement
	schedulesPassed = 1000 // likewise, of a user who may not see all
	ticksListed     = 2
)

// dueSlack is how long after its time a tick may be undecided in a healthy system.
const dueSlack = 5 * time.Second

// schedules shows the schedules of tags that the user may read.
func (v *view) schedules() (any, error) {
	q := v.r.URL.Query()
	shown := schedulesPage{
		Prefix: q.Get("prefix"), Owner: q.Get("owner"), First: q.Get("after") == "",
		Part: !v.allTags(access.Read), Deleted: v.did.Has("deleted"),
	}
	shown.Command = sentence.Command("schedule list", "prefix", shown.Prefix, "owner", shown.Owner)
	f := delaytask.ScheduleFilter{Prefix: shown.Prefix, Owner: shown.Owner, AfterName: q.Get("after"),
		Limit: schedulesOfPage, NoBodies: true}
	atOnce := schedulesRead
	if shown.Part {
		atOnce = schedulesPassed
	}
	page, next, err := v.look().Schedules(v.r.Context(), f, atOnce)
	if err != nil {
		return nil, err
	}
	for i := range page {
		shown.Schedules = append(shown.Schedules, v.listed(&page[i].Schedule))
	}
	if next != "" {
		shown.Next = query("prefix", shown.Prefix, "owner", shown.Owner, "after", next)
	}
	return shown, v.lastRuns(shown.Schedules)
}

func (v *view) listed(s *delaytask.Schedule) listedSchedule {
	one := listedSchedule{Schedule: *s, Overdue: v.overdue(s)}
	if s.State == delaytask.ScheduleActive {
		one.Ticks, _, _ = v.upcoming(s, ticksListed) // one that cannot be read has none
	}
	return one
}

// overdue reports whether a tick should have been decided, which takes a process that plans.
func (v *view) overdue(s *delaytask.Schedule) bool {
	return s.State == delaytask.ScheduleActive && !s.NextDue.IsZero() && v.Now.Sub(s.NextDue) > dueSlack
}

// upcoming lists ticks that are to come, with the warnings that a preview has.
func (v *view) upcoming(s *delaytask.Schedule, n int) ([]upcoming, []string, error) {
	ticks, warnings, err := v.look().Coming(v.r.Context(), s, n)
	jitter := s.NextDue.Sub(s.NextTick)
	all := make([]upcoming, len(ticks))
	for i, t := range ticks {
		all[i] = upcoming{
			Local: t.Time.Format("Mon 2006-01-02 15:04:05 -07:00"), Due: t.Time.Add(jitter), Note: t.Note,
			Dropped: t.Dropped,
		}
	}
	return all, warnings, err
}

// lastRuns reads how the newest runs of the schedules stand.
func (v *view) lastRuns(all []listedSchedule) error {
	var ids []int64
	for i := range all {
		if all[i].RunID != 0 {
			ids = append(ids, all[i].RunID)
		}
	}
	states, err := v.store.States(v.r.Context(), ids)
	if err != nil {
		return err
	}
	status := map[int64]row.Status{}
	for _, s := range states {
		status[s.ID] = s.Status
	}
	for i := range all {
		if found, there := status[all[i].RunID]; there {
			all[i].Last = found.Text()
			all[i].Waits = all[i].Overdue && !found.Final() && all[i].Overlap != delaytask.OverlapAllow
		}
	}
	return nil
}

// ShortReason is the beginning of why a schedule of the tag is paused or has ended.
func (v *view) ShortReason(tag, reason string) string { return v.beginning(tag, reason, 80) }

// SpecZone is the zone of a spec.
func (*view) SpecZone(s delaytask.Spec) string {
	if s.Zone == "" {
		return "UTC"
	}
	return s.Zone
}

// schedulePath is the path of a schedule's page, from the dashboard's root.
func schedulePath(name string) string { return "schedules/" + wire.Segment(name) }
