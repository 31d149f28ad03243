package wire

// Overview is what needs attention now, and how every tag stands.
type Overview struct {
	At        Time           `json:"at" doc:"When it was read, by the database's clock"`
	AgeMS     int64          `json:"age_ms" doc:"How long ago that was; over 5 s only where stale says why"`
	Stale     string         `json:"stale,omitempty" doc:"Why the last reading has failed: timeout, operator or database"`
	Missing   []MissingPart  `json:"missing" doc:"Parts that could not be read; what belongs to them is empty"`
	Attention []Finding      `json:"attention" doc:"The most urgent first; none means that nothing was found"`
	Totals    OverviewTotals `json:"totals"`
	Tags      []TagOverview  `json:"tags" doc:"Those that have tasks, are served or are paused"`
	Series    Series         `json:"series" doc:"The last hour by the minute, of all these tags together"`
	DueStart  Time           `json:"due_start,omitzero" doc:"When the first of the minutes begins that due has"`
	Due       []DueTasks     `json:"due" doc:"By minute of the next hour, of all these tags together"`
	HourStart Time           `json:"hour_start,omitzero" doc:"When the first step of last_hour begins"`
	StepMS    int64          `json:"step_ms" doc:"Of last_hour and of due of a tag"`
}

// MissingPart is a part of an overview that could not be read.
type MissingPart struct {
	Part string `json:"part" enum:"counts,due,leases,failures,history,forecast,locks"`
	Why  string `json:"why" enum:"timeout,operator,database" doc:"operator: a privilege or table is missing, or a disk full"`
}

// OverviewTotals are sums over the tags of an overview.
type OverviewTotals struct {
	Executing     DueTasks `json:"executing"`
	Overdue       DueTasks `json:"overdue"`
	DueNextMinute DueTasks `json:"due_next_minute" doc:"Stored tasks; a tick gets its task 10 s or more before it is due"`
	Completed     int64    `json:"completed" doc:"Within the minute"`
	Failed        int64    `json:"failed" doc:"For good, within the minute"`
	Minute        Time     `json:"minute,omitzero" doc:"The last one that all processes have written"`
	Nodes         int      `json:"nodes" doc:"Live processes that serve tags"`
	Silent        int      `json:"silent" doc:"Processes that served tags and have ended without a word"`
}

// TagOverview is how one tag stands.
type TagOverview struct {
	Tag         string           `json:"tag"`
	Counts      map[string]int64 `json:"counts" doc:"Up to 1,000 tasks by status; statuses without tasks are left out"`
	Capped      []string         `json:"capped,omitempty" doc:"Statuses whose count is a lower bound: there are more"`
	Overdue     DueTasks         `json:"overdue"`
	OldestDue   Time             `json:"oldest_due,omitzero" doc:"Of what is overdue"`
	Paused      bool             `json:"paused"`
	PausedSince Time             `json:"paused_since,omitzero" doc:"Absent where it is not known"`
	PausedBy    string           `json:"paused_by,omitempty" doc:"Access token, or user@host of the command; absent where it is not known"`
	Reason      string           `json:"reason,omitempty" doc:"Of the pause"`
	Nodes       []NodeRef        `json:"nodes" doc:"Live processes that serve the tag"`
	Lateness    *SeriesLateness  `json:"lateness_ms,omitempty" doc:"Of first attempts in the last hour"`
	LastHour    []HourStep       `json:"last_hour"`
	Due         []DueTasks       `json:"due" doc:"By step from due_start on; none where nothing falls due"`
}

// HourStep is what has happened to a tag within a step.
type HourStep struct {
	Completed int64   `json:"completed"`
	Retried   int64   `json:"retried"`
	Failed    int64   `json:"failed"`
	P99MS     float64 `json:"p99_ms" doc:"Lateness of first attempts; 0 where none started"`
}

// NodeRef names a process.
type NodeRef struct {
	Number int    `json:"number"`
	Name   string `json:"name"`
}

// Finding is something that needs attention.
type Finding struct {
	Code    string   `json:"code" doc:"Later versions may add codes"`
	Tag     string   `json:"tag,omitempty" doc:"Absent: it is about no single tag"`
	Number  int64    `json:"number" doc:"Of tasks, or of what the code names"`
	AtLeast bool     `json:"at_least,omitempty" doc:"There may be more"`
	Since   Time     `json:"since,omitzero" doc:"Absent where it is not known"`
	Text    string   `json:"text" doc:"One sentence: what, and why"`
	Do      string   `json:"do" doc:"The command that shows more or mends it, or what to do"`
	Task    ID       `json:"task,omitzero" doc:"One of the tasks"`
	Node    *NodeRef `json:"node,omitempty"`
	Group   string   `json:"group,omitempty" doc:"Of the most frequent error, see /v1/failures"`
	Error   string   `json:"error,omitempty" doc:"That error; it needs the verb read"`
	Stack   string   `json:"stack,omitempty" doc:"Where a processor hangs; for tokens that may observe all tags"`
}
