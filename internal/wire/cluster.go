package wire

// Node is a process that shares the database.
type Node struct {
	Number    int    `json:"number"`
	Name      string `json:"name"`
	PID       int    `json:"pid"`
	Address   string `json:"address,omitempty"`
	Version   string `json:"version"`
	State     string `json:"state" enum:"alive,leaving,silent"`
	Heartbeat Time   `json:"heartbeat"`
	Wake      string `json:"wake,omitempty" doc:"UDP address where it is told of tasks that others save"`

	UnreachableFrom []int `json:"unreachable_from,omitempty" doc:"The nodes whose wake-ups it does not acknowledge"`

	Tags   []string `json:"tags" doc:"That it serves"`
	Shares []Share  `json:"shares" doc:"Of each of these tags"`
}

// Share is the part of a tag's new tasks that a node has timers for.
type Share struct {
	Tag      string `json:"tag"`
	Position int    `json:"position" doc:"From 1 to total; 0 when the node has no share"`
	Total    int    `json:"total" doc:"How many nodes divide the tag's tasks"`
}

// NodeList lists them.
type NodeList struct {
	Nodes []Node `json:"nodes"`
}

// Tag is a tag and whether its tasks run.
type Tag struct {
	Tag    string `json:"tag"`
	Served bool   `json:"served" doc:"A live node runs its tasks"`
	Paused bool   `json:"paused"`
	Reason string `json:"reason,omitempty" doc:"Of the pause"`
}

// Wake names the tags that other processes may have saved tasks of.
type Wake struct {
	Tags []string `json:"tags" minItems:"1" maxItems:"100" doc:"That rows were inserted of"`
}

// TagList lists them.
type TagList struct {
	Tags []Tag `json:"tags"`
}

// TagStats are the statistics of one tag.
type TagStats struct {
	Tag           string           `json:"tag"`
	Counts        map[string]int64 `json:"counts" doc:"Tasks by status; statuses without tasks are left out"`
	Capped        []string         `json:"capped,omitempty" doc:"Statuses whose count is a lower bound: there are more"`
	OldestPending Time             `json:"oldest_pending,omitzero"`
	Served        bool             `json:"served"`
	Paused        bool             `json:"paused"`
	Lateness      *Lateness        `json:"lateness_ms,omitempty" doc:"Absent where nothing has run"`
}

// Stats has those of every tag.
type Stats struct {
	Tags []TagStats `json:"tags"`
}

// Failures are failed tasks, grouped by their errors.
type Failures struct {
	Groups []FailureGroup `json:"groups" doc:"The largest first"`
	Tasks  int            `json:"tasks" doc:"That were looked at: the newest, at most 1,000"`
	More   bool           `json:"more,omitempty" doc:"There are older ones"`
}

// FailureGroup is failed tasks of a tag whose errors are the same but for numbers, addresses and quoted texts.
type FailureGroup struct {
	ID        string `json:"id" doc:"The parameter group of a list"`
	Tag       string `json:"tag"`
	Error     string `json:"error" doc:"The first line, with * for what differs; of a long one the beginning"`
	Tasks     int    `json:"tasks"`
	First     Time   `json:"first" doc:"When the first of them failed"`
	Last      Time   `json:"last"`
	ExampleID ID     `json:"example_id" doc:"The last of them"`
	Example   string `json:"example" doc:"The beginning of its error"`
}

// Lateness tells in milliseconds how late first attempts started.
type Lateness struct {
	Samples int     `json:"samples"`
	P50     float64 `json:"p50"`
	P95     float64 `json:"p95"`
	P99     float64 `json:"p99"`
	Max     float64 `json:"max"`
}

// TagLateness tells how late the first attempts of a tag's tasks started within a window.
type TagLateness struct {
	Tag      string    `json:"tag"`
	WindowMS int64     `json:"window_ms"`
	Lateness *Lateness `json:"lateness_ms,omitempty" doc:"Absent where nothing has run"`
}
