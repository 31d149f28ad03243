package report

import "time"

// Failures is failed tasks, grouped by their errors.
type Failures struct {
	Groups []FailureGroup // the largest first
	Tasks  int            // that were looked at: the newest, at most 1,000
	More   bool           // there are older ones
}

// FailureGroup is failed tasks of a tag whose errors are the same except for numbers, addresses and quoted texts.
type FailureGroup struct {
	ID          string // Filter.Group of these tasks; it does not change
	Tag         string
	Error       string // the first line, with * for what differs; of a long one the beginning
	Tasks       int
	First, Last time.Time // when these tasks failed
	ExampleID   int64     // the last of them
	Example     string    // the beginning of its error, at most 300 bytes
}
