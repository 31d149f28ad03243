package judge

import (
	"time"

	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// Counts says how much a journal shows. An invariant that was not put to the test has not held.
type Counts struct {
	Nodes      int `json:"nodes"`    // lives of processes
	Tasks      int `json:"tasks"`    // that the database has shown
	Accepted   int `json:"accepted"` // saves that were accepted
	Unknown    int `json:"unknown"`  // saves of unknown outcome, as their callers were told
	Duplicates int `json:"duplicates"`
	Refused    int `json:"refused"`
	Executions int `json:"executions"`
	Extra      int `json:"extra"` // executions that succeeded beside the one that counts
	Completed  int `json:"completed"`
	Failed     int `json:"failed"`
	Cancelled  int `json:"cancelled"`
	Rescued    int `json:"rescued"` // leases that were taken from executors that were gone or stuck
	Timed      int `json:"timed"`   // of these, those that ended when the bound counted from their ends
	Quarantine int `json:"quarantined"`
	Crashes    int `json:"crashes"`
	Stops      int `json:"stops"`

	Schedules int `json:"schedules"`
	Runs      int `json:"runs"`     // of schedules
	Dropped   int `json:"dropped"`  // ticks that were decided not to run
	Replayed  int `json:"replayed"` // ticks that were compared with a single node's

	// Slowest is how long after the lease's end, and after the faults, the latest rescue came.
	Slowest time.Duration `json:"slowest"`

	Faults map[string]int `json:"faults"` // by kind
}

func (c *Counts) Add(o Counts) {
	sums, more := c.numbers(), o.numbers()
	for i := range sums {
		*sums[i] += *more[i]
	}
	c.Slowest = max(c.Slowest, o.Slowest)
	if c.Faults == nil {
		c.Faults = map[string]int{}
	}
	for kind, n := range o.Faults {
		c.Faults[kind] += n
	}
}

// numbers are the counts that add up.
func (c *Counts) numbers() []*int {
	return []*int{
		&c.Nodes, &c.Tasks, &c.Accepted, &c.Unknown, &c.Duplicates, &c.Refused, &c.Executions, &c.Extra, &c.Completed,
		&c.Failed, &c.Cancelled, &c.Rescued, &c.Timed, &c.Quarantine, &c.Crashes, &c.Stops, &c.Schedules, &c.Runs,
		&c.Dropped, &c.Replayed,
	}
}

func count(h *history) Counts {
	c := Counts{Faults: map[string]int{}, Nodes: len(h.starts), Crashes: len(h.crashed), Stops: len(h.stops)}
	for _, s := range h.saves {
		for _, o := range s.tries {
			c.answer(o)
		}
	}
	for _, t := range h.tasks {
		c.task(h, t)
	}
	c.Schedules, c.Runs = len(h.calendars), len(h.planted)
	for _, s := range h.calendars {
		for _, d := range s.decisions {
			for _, r := range d.New {
				if r.TaskID == 0 {
					c.Dropped += r.Ticks
				}
			}
		}
	}
	for _, f := range h.faults {
		c.Faults[f.begin.Detail]++
	}
	return c
}

// rescue counts one that came so long after the lease's end and the faults.
func (c *Counts) rescue(late time.Duration, timed bool) {
	c.Slowest = max(c.Slowest, late)
	if timed {
		c.Timed++
	}
}

func (c *Counts) answer(o *span) {
	switch {
	case o.end == nil:
	case o.end.Error == journal.OK:
		c.Accepted++
	case o.end.Error == journal.Unknown:
		c.Unknown++
	case o.end.Error == journal.Duplicate:
		c.Duplicates++
	default:
		c.Refused++
	}
}

func (c *Counts) task(h *history, t *task) {
	succeeded := 0
	for _, r := range t.runs {
		c.Executions++
		if r.ended(journal.OK) {
			succeeded++
		}
	}
	c.Extra += max(succeeded-1, 0)
	for i, w := range t.writes {
		if i > 0 && w.CrashCount > t.writes[i-1].CrashCount {
			c.Rescued++
		}
	}
	last := t.last()
	if last == nil {
		return
	}
	c.Tasks++
	switch last.Status {
	case completed:
		c.Completed++
	case cancelled:
		c.Cancelled++
	case failed:
		c.Failed++
		if h.isQuarantined(t) {
			c.Quarantine++
		}
	}
}
