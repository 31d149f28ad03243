package processor

import "time"

// Node is a process that shares the database.
type Node struct {
	Number    int // leased; part of the ids that it makes
	Name      string
	PID       int
	Address   string
	Version   string   // of delaytask
	Tags      []string // that it serves; none when it was not started
	Shares    []Share  // of each of these tags, in the same order
	Leaving   bool     // it is stopping
	Alive     bool     // it was heard of within the last 5 s
	Heartbeat time.Time
}

// Share is which part of a tag's new tasks a node has timers for. A node that leaves, or that was not heard of for 2 s,
// has none; the others have divided its share between them.
type Share struct {
	Tag      string
	Position int // from 1 to Total; 0 when the node has no share
	Total    int // how many nodes divide the tag's tasks
}

// TagState says whether the tasks of a tag run.
type TagState struct {
	Tag    string
	Served bool // a live node runs its tasks
	Paused bool
}

// TagStats is what there is of one tag.
type TagStats struct {
	Tag           string
	Counts        map[Status]int64 // statuses without tasks are left out
	OldestPending time.Time        // smallest due time of its pending tasks; zero when there are none
	Lateness      Lateness         // of the newest completed tasks, at most 1,000 of them
	Served        bool             // a live node runs its tasks
	Paused        bool
}

// Lateness tells how late the first attempts of completed tasks started. All is zero when there are none.
type Lateness struct {
	Samples            int // completed tasks that it was taken of
	P50, P95, P99, Max time.Duration
}
