package wire

// Series is what all processes have counted over time.
type Series struct {
	Tag    string        `json:"tag,omitempty" doc:"Absent: all tags together"`
	SpanMS int64         `json:"span_ms" doc:"Of each point: a minute or an hour"`
	From   Time          `json:"from,omitzero" doc:"Absent in an overview without its history"`
	To     Time          `json:"to,omitzero" doc:"Likewise"`
	Points []SeriesPoint `json:"points" doc:"In order; spans of which nothing was counted are left out"`
	Marks  []SeriesMark  `json:"marks" doc:"What may explain a change, in order"`
}

// SeriesPoint is what has happened within a span.
type SeriesPoint struct {
	Start     Time            `json:"start"`
	Completed int64           `json:"completed"`
	Retried   int64           `json:"retried" doc:"Attempts that failed and that another one follows"`
	Failed    int64           `json:"failed" doc:"Tasks that have failed for good"`
	Lost      int64           `json:"lost" doc:"Leases whose executor was gone; the tasks run again"`
	Lateness  *SeriesLateness `json:"lateness_ms,omitempty" doc:"Absent where no first attempt started"`
}

// SeriesLateness tells in milliseconds how late first attempts started.
type SeriesLateness struct {
	Samples int64   `json:"samples"`
	P50     float64 `json:"p50" doc:"Near the real one"`
	P99     float64 `json:"p99" doc:"Near the real one"`
	Max     float64 `json:"max" doc:"Exact"`
}

// SeriesMark is something that may explain a change.
type SeriesMark struct {
	Time Time   `json:"time"`
	Kind string `json:"kind" doc:"A node joined, left or lost; a tag paused or resumed; a failover of the database"`
	Name string `json:"name,omitempty" doc:"Of the node or the server; of a pause or its end, who made it"`
	Tag  string `json:"tag,omitempty"`
}
