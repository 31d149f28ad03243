package wire

// Bulk asks for a change of all tasks that match.
type Bulk struct {
	Action string     `json:"action" enum:"cancel,retry" doc:"cancel: pending tasks; retry: failed ones"`
	Filter BulkFilter `json:"filter,omitzero" doc:"A task that is to change fits all of its members"`
	All    bool       `json:"all,omitempty" doc:"Needed with an empty filter: all pending, or all failed, tasks"`
	DryRun bool       `json:"dry_run,omitempty" doc:"Count only: at most 10,000 tasks, for about 0.1 s"`
	AsOf   *Moment    `json:"as_of,omitempty" doc:"Leave out what was saved, failed or became late since; default: now"`
}

// BulkCount is what a dry run has counted.
type BulkCount struct {
	Tasks  int  `json:"tasks" doc:"That would be changed"`
	Capped bool `json:"capped" doc:"There may be more"`
	AsOf   Time `json:"as_of" doc:"By the database's clock; a change as of then leaves alone what comes later"`
}

// BulkRun is a bulk change in the background of a process.
type BulkRun struct {
	ID      string        `json:"id"`
	Action  string        `json:"action" enum:"cancel,retry"`
	Who     string        `json:"who" doc:"Access token, or user@host of the command; empty: no token was asked for"`
	Filter  BulkSelection `json:"filter"`
	Detail  string        `json:"detail,omitempty" doc:"The filter as a text, where its process tells only the tag"`
	AsOf    Time          `json:"as_of,omitzero" doc:"What was saved, failed or became late since is left alone"`
	Began   Time          `json:"began" doc:"By the database's clock; at first, and with process_only, its process's"`
	Done    int           `json:"done" doc:"Tasks that were changed so far"`
	Seen    Time          `json:"seen,omitzero" doc:"When its process last told how far it is; absent until it does"`
	Ended   Time          `json:"ended,omitzero" doc:"Absent while it runs"`
	Outcome string        `json:"outcome" enum:"running,done,stopped,failed,lost,unknown"`
	Error   string        `json:"error,omitempty" doc:"Why it has failed, or what has stopped it other than a caller"`

	Stopping    bool `json:"stopping,omitempty" doc:"It is asked to stop, and ends after the batch that it is at"`
	ProcessOnly bool `json:"process_only,omitempty" doc:"It is not in the audit log, so no other process knows it"`
}

// BulkList lists the runs of all processes.
type BulkList struct {
	Runs []BulkRun `json:"runs" doc:"The newest first"`
}
