package report

import "time"

// Node is a process that shares the database.
type Node struct {
	Number  int // leased; part of the ids that it makes
	Name    string
	PID     int
	Address string
	Version string   // of delaytask, a plus, and the revision of the build or a digest of the program
	Tags    []string // that it serves; none when it was not started
	Shares  []Share  // of each of these tags, in the same order
	Wake    string   // the UDP address where it is told of tasks that others save; "" for none
	// UnreachableFrom has the numbers of the nodes whose wake-ups it does not acknowledge.
	UnreachableFrom []int
	Leaving         bool // it is stopping
	Alive           bool // its heartbeat is at most 5 s old
	Heartbeat       time.Time
}

// Share is which part of a tag's new tasks a node has timers for. A node that leaves, or whose heartbeat is older than
// 2 s, has none: the others divide its share.
type Share struct {
	Tag      string
	Position int // from 1 to Total; 0 when the node has no share
	Total    int // how many nodes divide the tag's tasks
}
