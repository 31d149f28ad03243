package doctor

import (
	"context"

	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/eyes/standing"
)

// checkSchedules looks for schedules that do not do their work.
func checkSchedules(ctx context.Context, s *Subject) (all []Finding, err error) {
	reading, err := s.Store.Now(ctx)
	if err != nil {
		return nil, err
	}
	found, err := standing.Read(ctx, s.Store, reading.Time)
	for _, of := range found {
		f := Finding{"schedules_behind", Warning, "ticks are due and no process decides about them: " + few(of.Names),
			"no process lives, none can read the schedule, or the database refuses the decision: the log says why",
			sentence.Command("schedule explain") + " " + sentence.Argument(of.Names[0])}
		switch of.Trouble {
		case standing.Paused:
			f.Code, f.Title = "schedules_paused", "schedules have paused by themselves: "+few(of.Names)
			f.Meaning = "so many runs in a row have failed; no tick runs until an operator resumes them"
		case standing.Unsuccessful:
			f.Code = "schedules_unsuccessful"
			f.Title = "no run has completed for two ticks or more: " + few(of.Names)
			f.Meaning = "their runs fail, or their ticks do not run; the history has the reasons"
		}
		all = append(all, f)
	}
	return all, err
}
