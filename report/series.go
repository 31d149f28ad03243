package report

import "time"

// SeriesFilter says what Series returns. Its times are on the database's clock.
type SeriesFilter struct {
	// Tag is a tag, or [OtherTags]. Default: all tags together.
	Tag string
	// Since is how long before To the series begins. It and From exclude each other. Default: 1 h.
	Since time.Duration
	// From is when the series begins.
	From time.Time
	// To is when the series ends. Default: now.
	To time.Time
}

// OtherTags stands for the tags that a process does not count apart: those beyond the first 200 in an hour.
const OtherTags = "(other)"

// Series is what all processes have counted over time. Minutes are kept for 6 h and hours for 30 days. A span that
// began more than 6 h ago, or is longer, has a point an hour.
type Series struct {
	Span     time.Duration // of each point: a minute or an hour
	From, To time.Time
	Points   []SeriesPoint // in order; spans without counts are left out
	Marks    []SeriesMark  // in order
}

// SeriesPoint is what has happened within a span of time. A process writes each minute up to 10 s after its end.
type SeriesPoint struct {
	Start     time.Time
	Completed int64
	Retried   int64 // attempts that failed and that another one follows
	Failed    int64 // tasks that have failed for good
	Lost      int64 // leases whose executor was gone; the tasks run again

	Started       int64         // first attempts; their lateness follows
	P50, P99, Max time.Duration // P50 and P99 are near the real ones, Max is exact to the microsecond
}

// SeriesMark is something that explains a change in a series.
type SeriesMark struct {
	Time time.Time
	Kind MarkKind
	Name string // of the node, of the server that answers since, or of who paused or resumed the tag; may be ""
	Tag  string // that was paused or resumed
}

// MarkKind says what a mark is about. Later versions may add kinds.
type MarkKind string

// The kinds of marks.
const (
	MarkJoined   MarkKind = "joined"   // a node started
	MarkLeft     MarkKind = "left"     // a node stopped
	MarkLost     MarkKind = "lost"     // a node fell silent, at its last heartbeat
	MarkPaused   MarkKind = "paused"   // a tag was paused
	MarkResumed  MarkKind = "resumed"  // a tag was resumed
	MarkFailover MarkKind = "failover" // another server of the database answers
)
