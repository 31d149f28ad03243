package wire

import (
	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/report"
)

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
	Tag           string                     `json:"tag"`
	Counts        map[delaytask.Status]int64 `json:"counts" doc:"Tasks by status; statuses without tasks are left out"`
	Capped        []delaytask.Status         `json:"capped,omitempty" doc:"Statuses whose count is a lower bound"`
	OldestPending Time                       `json:"oldest_pending,omitzero"`
	Served        bool                       `json:"served"`
	Paused        bool                       `json:"paused"`

	Lateness *Lateness `json:"lateness_ms,omitempty" doc:"Of 500 tags at most; absent where nothing has run"`
}

// Stats has the statistics of every tag.
type Stats struct {
	Tags []TagStats `json:"tags" doc:"Sorted by tag"`
	Next string     `json:"next,omitempty" doc:"The parameter after of the next page; absent: no more"`
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

// FromNodes is the processes in JSON.
func FromNodes(nodes []report.Node) NodeList { return NodeList{each(nodes, fromNode)} }

// To is the processes as Go has them.
func (l *NodeList) To() []report.Node { return each(l.Nodes, (*Node).to) }

func fromNode(n *report.Node) Node {
	v := Node{
		Number: n.Number, Name: n.Name, PID: n.PID, Address: n.Address, Version: n.Version, State: "alive",
		Heartbeat: Time(n.Heartbeat), Wake: n.Wake, UnreachableFrom: n.UnreachableFrom,
		Tags: append([]string{}, n.Tags...), Shares: each(n.Shares, func(s *report.Share) Share { return Share(*s) }),
	}
	switch {
	case !n.Alive:
		v.State = "silent"
	case n.Leaving:
		v.State = "leaving"
	}
	return v
}

func (n *Node) to() report.Node {
	return report.Node{
		Number: n.Number, Name: n.Name, PID: n.PID, Address: n.Address, Version: n.Version,
		Alive: n.State != "silent", Leaving: n.State == "leaving", Heartbeat: n.Heartbeat.Std(), Wake: n.Wake,
		UnreachableFrom: n.UnreachableFrom, Tags: n.Tags,
		Shares: each(n.Shares, func(s *Share) report.Share { return report.Share(*s) }),
	}
}

// FromTags is the tags in JSON.
func FromTags(tags []report.TagState) TagList {
	return TagList{each(tags, func(t *report.TagState) Tag { return Tag(*t) })}
}

// To is the tags as Go has them.
func (l *TagList) To() []report.TagState {
	return each(l.Tags, func(t *Tag) report.TagState { return report.TagState(*t) })
}

// FromStats is the statistics of tags in JSON.
func FromStats(stats []report.TagStats) Stats {
	return Stats{Tags: each(stats, func(s *report.TagStats) TagStats {
		return TagStats{
			Tag: s.Tag, Counts: s.Counts, Capped: s.Capped, OldestPending: Time(s.OldestPending), Served: s.Served,
			Paused: s.Paused, Lateness: FromLateness(s.Lateness),
		}
	})}
}

// To is the statistics as Go has them.
func (s *Stats) To() []report.TagStats {
	return each(s.Tags, func(s *TagStats) report.TagStats {
		return report.TagStats{
			Tag: s.Tag, Counts: s.Counts, Capped: s.Capped, OldestPending: s.OldestPending.Std(), Served: s.Served,
			Paused: s.Paused, Lateness: s.Lateness.To(),
		}
	})
}

// FromFailures is groups of failed tasks in JSON.
func FromFailures(f *report.Failures) Failures {
	return Failures{Groups: each(f.Groups, func(g *report.FailureGroup) FailureGroup {
		return FailureGroup{
			ID: g.ID, Tag: g.Tag, Error: g.Error, Tasks: g.Tasks, First: Time(g.First), Last: Time(g.Last),
			ExampleID: ID(g.ExampleID), Example: g.Example,
		}
	}), Tasks: f.Tasks, More: f.More}
}

// To is the groups as Go has them.
func (f *Failures) To() report.Failures {
	return report.Failures{Groups: each(f.Groups, func(g *FailureGroup) report.FailureGroup {
		return report.FailureGroup{
			ID: g.ID, Tag: g.Tag, Error: g.Error, Tasks: g.Tasks, First: g.First.Std(), Last: g.Last.Std(),
			ExampleID: int64(g.ExampleID), Example: g.Example,
		}
	}), Tasks: f.Tasks, More: f.More}
}

// FromLateness is nil where nothing has run.
func FromLateness(l report.Lateness) *Lateness {
	if l.Samples == 0 {
		return nil
	}
	return &Lateness{
		Samples: l.Samples, P50: Milliseconds(l.P50), P95: Milliseconds(l.P95), P99: Milliseconds(l.P99),
		Max: Milliseconds(l.Max),
	}
}

// To is the lateness as Go has it, the zero value for nil.
func (l *Lateness) To() report.Lateness {
	if l == nil {
		return report.Lateness{}
	}
	return report.Lateness{
		Samples: l.Samples, P50: exact(l.P50), P95: exact(l.P95), P99: exact(l.P99), Max: exact(l.Max),
	}
}
