package report

import (
	"time"

	"github.com/delaytask/delaytask"
)

// TagState says whether the tasks of a tag run.
type TagState struct {
	Tag    string
	Served bool // a live node runs its tasks
	Paused bool
	Reason string // of the pause, "" where none was given
}

// TagStats is what there is of one tag.
type TagStats struct {
	Tag           string
	Counts        map[delaytask.Status]int64 // statuses without tasks are left out
	Capped        []delaytask.Status         // whose count is a lower bound: there may be more
	OldestPending time.Time                  // smallest due time of its pending tasks; zero without pending tasks
	// Lateness is of the newest completed tasks, at most 1,000. Of more than 500 tags that have some, only the first
	// 500 by name have one.
	Lateness Lateness
	Served   bool // a live node runs its tasks
	Paused   bool
}

// Lateness is how late the first attempts of completed tasks started. All is zero without such tasks.
type Lateness struct {
	Samples            int // completed tasks that it was taken of
	P50, P95, P99, Max time.Duration
}
