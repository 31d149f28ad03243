// Package standing finds schedules that need an operator, for the overview and the doctor.
package standing

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
	"github.com/delaytask/delaytask/internal/schedules/spec"
)

// Trouble is what is wrong with a schedule.
type Trouble uint8

// The troubles, the most urgent first.
const (
	Behind       Trouble = iota // ticks are due, and no process decides about them
	Paused                      // it has paused by itself, because its runs failed
	Unsuccessful                // no run has completed for two ticks or more
)

// Finding is the schedules of a tag that have one trouble.
type Finding struct {
	Trouble Trouble
	Tag     string
	Names   []string // sorted
	Since   row.Time // of the first: when its tick was due, when it paused, or the tick of its last success
	Reason  string   // of the pause of the first
}

// Store is what is read. Its reads take no lock.
type Store interface {
	Schedules(ctx context.Context, f row.ScheduleFilter) ([]row.Schedule, []row.Broken, error)
	OpenRuns(ctx context.Context, schedules []int64, limit int) ([]row.ScheduleRun, error)
}

const (
	page     = 500
	mostRead = 1000 // schedules, the first by name
	mostOpen = 10_000
	// behindAfter is how long a tick is due that counts. A failover, or a node that takes over a share, needs less.
	behindAfter = time.Minute
	// fewTicks is from how many ticks on the lack of a success counts.
	fewTicks = 2
)

// Read returns what is wrong at the moment.
func Read(ctx context.Context, from Store, now row.Time) ([]Finding, error) {
	var found []Finding
	filter := row.ScheduleFilter{Limit: page, NoBodies: true}
	for range mostRead / page {
		some, _, err := from.Schedules(ctx, filter)
		if err != nil || len(some) == 0 {
			return found, err
		}
		runs, err := from.OpenRuns(ctx, row.IDsOf(some, func(s row.Schedule) int64 { return s.ID }), mostOpen)
		if err != nil {
			return found, err
		}
		open := map[int64][]decide.Open{}
		for _, run := range runs {
			open[run.ScheduleID] = append(open[run.ScheduleID], decide.Open{Run: run})
		}
		for i := range some {
			if err := ctx.Err(); err != nil { // a spec may be costly to step
				return found, err
			}
			found = add(found, &some[i], open[some[i].ID], now)
		}
		if len(some) < page {
			break
		}
		filter.AfterName = some[len(some)-1].Name
	}
	slices.SortFunc(found, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Trouble, b.Trouble), cmp.Compare(a.Tag, b.Tag))
	})
	return found, nil
}

// add looks at one schedule. A backfill is at work as long as it needs. One that cannot be read here tells nothing.
func add(found []Finding, s *row.Schedule, open []decide.Open, now row.Time) []Finding {
	of := Finding{Tag: s.Tag}
	if s.PausedItself() {
		of.Trouble, of.Since, of.Reason = Paused, s.Since, s.Reason
		return join(found, of, s.Name)
	}
	sp, err := spec.ParseText(s.Spec)
	if err != nil || s.Parent != "" || s.State != row.ScheduleActive {
		return found
	}
	st := decide.State{Schedule: *s, Spec: sp, Open: open, Now: now}
	switch {
	case decide.Behind(&st) > 0:
		if of.Since = s.Next.Add(decide.Jitter(s.Name, s.Jitter)); now.Sub(of.Since) < behindAfter {
			return found
		}
	case decide.Unsuccessful(&st) >= fewTicks:
		of.Trouble, of.Since = Unsuccessful, cmp.Or(s.Success, s.Created)
	default:
		return found
	}
	return join(found, of, s.Name)
}

// join adds a schedule to the finding of its trouble and tag.
func join(found []Finding, of Finding, name string) []Finding {
	same := func(f Finding) bool { return f.Trouble == of.Trouble && f.Tag == of.Tag }
	i := slices.IndexFunc(found, same)
	if i < 0 {
		of.Names = []string{name}
		return append(found, of)
	}
	found[i].Names = append(found[i].Names, name)
	if of.Since < found[i].Since {
		found[i].Since, found[i].Reason = of.Since, of.Reason
	}
	return found
}
