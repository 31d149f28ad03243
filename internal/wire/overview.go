package wire

import (
	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/report"
)

// Overview is what needs attention now, and how every tag stands.
type Overview struct {
	At        Time                   `json:"at" doc:"When it was read, by the database's clock"`
	AgeMS     int64                  `json:"age_ms" doc:"How long ago that was; over 5 s only where stale says why"`
	Stale     report.OverviewTrouble `json:"stale,omitempty" doc:"Why reading failed: timeout, operator or database"`
	Missing   []MissingPart          `json:"missing" doc:"Parts that could not be read; what belongs to them is empty"`
	Attention []Finding              `json:"attention" doc:"The most urgent first; none means that nothing was found"`
	Totals    OverviewTotals         `json:"totals"`
	Tags      []TagOverview          `json:"tags" doc:"Those that have tasks, are served or are paused"`
	Series    Series                 `json:"series" doc:"The last hour by the minute, of all these tags together"`
	DueStart  Time                   `json:"due_start,omitzero" doc:"When the first of the minutes begins that due has"`
	Due       []DueTasks             `json:"due" doc:"By minute of the next hour, of all these tags together"`
	HourStart Time                   `json:"hour_start,omitzero" doc:"When the first step of last_hour begins"`
	StepMS    int64                  `json:"step_ms" doc:"Of last_hour and of due of a tag"`

	MoreTags     int `json:"more_tags,omitempty" doc:"Tags that limit has left out"`
	MoreFindings int `json:"more_findings,omitempty" doc:"Findings that limit has left out"`
}

// MissingPart is a part of an overview that could not be read.
type MissingPart struct {
	Part report.OverviewPart `json:"part" enum:"counts,due,leases,failures,history,forecast,locks"`

	Why report.OverviewTrouble `json:"why" enum:"timeout,operator,database" doc:"operator: privilege, table, full disk"`
}

// OverviewTotals are sums over the tags of an overview.
type OverviewTotals struct {
	Executing     DueTasks `json:"executing"`
	Overdue       DueTasks `json:"overdue"`
	DueNextMinute DueTasks `json:"due_next_minute" doc:"Stored tasks; a tick gets its task at least 10 s before"`
	Completed     int64    `json:"completed" doc:"Within the minute"`
	Failed        int64    `json:"failed" doc:"For good, within the minute"`
	Minute        Time     `json:"minute,omitzero" doc:"The last one that all processes have written"`
	Nodes         int      `json:"nodes" doc:"Live processes that serve tags"`
	Silent        int      `json:"silent" doc:"Processes that served tags and have ended without a word"`
}

// TagOverview is how one tag stands.
type TagOverview struct {
	Tag         string                     `json:"tag"`
	Counts      map[delaytask.Status]int64 `json:"counts" doc:"Up to 1,000 tasks by status, without empty ones"`
	Capped      []delaytask.Status         `json:"capped,omitempty" doc:"Statuses whose count is a lower bound"`
	Overdue     DueTasks                   `json:"overdue"`
	OldestDue   Time                       `json:"oldest_due,omitzero" doc:"Of what is overdue"`
	Paused      bool                       `json:"paused"`
	PausedSince Time                       `json:"paused_since,omitzero" doc:"Absent where it is not known"`
	PausedBy    string                     `json:"paused_by,omitempty" doc:"Token, or user@host; absent if not known"`
	Reason      string                     `json:"reason,omitempty" doc:"Of the pause"`
	Nodes       []NodeRef                  `json:"nodes" doc:"Live processes that serve the tag"`
	Lateness    *SeriesLateness            `json:"lateness_ms,omitempty" doc:"Of first attempts in the last hour"`
	LastHour    []HourStep                 `json:"last_hour"`
	Due         []DueTasks                 `json:"due" doc:"By step from due_start on; none where nothing falls due"`
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
	Code    report.FindingCode `json:"code" doc:"Later versions may add codes"`
	Tag     string             `json:"tag,omitempty" doc:"Absent: it is about no single tag"`
	Number  int64              `json:"number" doc:"Of tasks, or of what the code names"`
	AtLeast bool               `json:"at_least,omitempty" doc:"There may be more"`
	Since   Time               `json:"since,omitzero" doc:"Absent where it is not known"`
	Text    string             `json:"text" doc:"One sentence: what, and why"`
	Do      string             `json:"do" doc:"The command that shows more or mends it, or what to do"`
	Task    ID                 `json:"task,omitzero" doc:"One of the tasks"`
	Node    *NodeRef           `json:"node,omitempty"`
	Group   string             `json:"group,omitempty" doc:"Of the most frequent error, see /v1/failures"`
	Error   string             `json:"error,omitempty" doc:"That error; it needs the verb read"`
	Stack   string             `json:"stack,omitempty" doc:"Where it hangs; for tokens that may observe all tags"`

	Evidence Evidence `json:"evidence,omitzero" doc:"What else led to the finding"`
}

// Evidence is what else led to a finding.
type Evidence struct {
	Servers      []string         `json:"servers,omitempty" doc:"two_databases: one of each; replica: the source"`
	ClockWidthMS int64            `json:"clock_width_ms,omitempty" doc:"clock_wide: bound on the clock's error"`
	Nodes        int              `json:"nodes,omitempty" doc:"overdue: live processes that serve the tag"`
	Executing    *DueTasks        `json:"executing,omitempty" doc:"overdue: tasks of the tag that execute"`
	Thread       string           `json:"thread,omitempty" doc:"rows_locked: the connection of the transaction"`
	MayLock      bool             `json:"may_lock,omitempty" doc:"rows_locked: the rows may be no tasks"`
	Attempt      int              `json:"attempt,omitempty" doc:"hanging"`
	Completed    int64            `json:"completed,omitempty" doc:"retrying: tasks completed in the same time"`
	LeasedUntil  Time             `json:"leased_until,omitzero" doc:"node_silent: when its last lease ends"`
	Status       delaytask.Status `json:"status,omitempty" doc:"purge_behind: of the tasks"`
	RetentionMS  int64            `json:"retention_ms,omitempty" doc:"purge_behind: of that status"`
	Tags         []string         `json:"tags,omitempty" doc:"purge_behind; rows_locked: tags that wait"`
	Schedules    []string         `json:"schedules,omitempty" doc:"Of the codes of schedules"`
}

// FromOverview is an overview in JSON.
func FromOverview(o *report.Overview) Overview {
	t := &o.Totals
	return Overview{
		At: Time(o.At), AgeMS: o.Age.Milliseconds(), Stale: o.Stale,
		Missing:   each(o.Missing, func(m *report.MissingPart) MissingPart { return MissingPart(*m) }),
		Attention: each(o.Attention, fromFinding),
		Totals: OverviewTotals{
			Executing: DueTasks(t.Executing), Overdue: DueTasks(t.Overdue), DueNextMinute: DueTasks(t.DueNextMinute),
			Completed: t.Completed, Failed: t.Failed, Minute: Time(t.Minute), Nodes: t.Nodes, Silent: t.Silent,
		},
		Tags: each(o.Tags, fromTagOverview), Series: FromSeries(&o.Series), DueStart: Time(o.DueStart),
		Due: each(o.Due, fromDue), HourStart: Time(o.HourStart), StepMS: report.OverviewStep.Milliseconds(),
		MoreTags: o.MoreTags, MoreFindings: o.MoreFindings,
	}
}

// To is the overview as Go has it.
func (o *Overview) To() report.Overview {
	t := &o.Totals
	return report.Overview{
		At: o.At.Std(), Age: millis(o.AgeMS), Stale: o.Stale,
		Missing:   each(o.Missing, func(m *MissingPart) report.MissingPart { return report.MissingPart(*m) }),
		Attention: each(o.Attention, (*Finding).to),
		Totals: report.OverviewTotals{
			Executing: report.DueTasks(t.Executing), Overdue: report.DueTasks(t.Overdue),
			DueNextMinute: report.DueTasks(t.DueNextMinute), Completed: t.Completed, Failed: t.Failed,
			Minute: t.Minute.Std(), Nodes: t.Nodes, Silent: t.Silent,
		},
		Tags: each(o.Tags, (*TagOverview).to), Series: o.Series.To(), DueStart: o.DueStart.Std(),
		Due: each(o.Due, toDue), HourStart: o.HourStart.Std(),
		MoreTags: o.MoreTags, MoreFindings: o.MoreFindings,
	}
}

func fromDue(d *report.DueTasks) DueTasks { return DueTasks(*d) }

func toDue(d *DueTasks) report.DueTasks { return report.DueTasks(*d) }

func fromFinding(f *report.Finding) Finding {
	v := Finding{
		Code: f.Code, Tag: f.Tag, Number: f.Number, AtLeast: f.AtLeast, Since: Time(f.Since), Text: f.Text, Do: f.Do,
		Task: ID(f.Task), Group: f.Group, Error: f.Error, Stack: f.Stack,
	}
	if f.Node.Number > 0 {
		v.Node = (*NodeRef)(&f.Node)
	}
	e := &f.Evidence
	v.Evidence = Evidence{
		Servers: e.Servers, ClockWidthMS: e.ClockWidth.Milliseconds(), Nodes: e.Nodes,
		Executing: (*DueTasks)(e.Executing),
		Thread:    e.Thread, MayLock: e.MayLock, Attempt: e.Attempt, Completed: e.Completed,
		LeasedUntil: Time(e.LeasedUntil), Status: e.Status, RetentionMS: e.Retention.Milliseconds(), Tags: e.Tags,
		Schedules: e.Schedules,
	}
	return v
}

func (f *Finding) to() report.Finding {
	found := report.Finding{
		Code: f.Code, Tag: f.Tag, Number: f.Number, AtLeast: f.AtLeast, Since: f.Since.Std(), Text: f.Text, Do: f.Do,
		Task: int64(f.Task), Group: f.Group, Error: f.Error, Stack: f.Stack,
	}
	if f.Node != nil {
		found.Node = report.NodeRef(*f.Node)
	}
	e := &f.Evidence
	found.Evidence = report.Evidence{
		Servers: e.Servers, ClockWidth: millis(e.ClockWidthMS), Nodes: e.Nodes,
		Executing: (*report.DueTasks)(e.Executing),
		Thread:    e.Thread, MayLock: e.MayLock, Attempt: e.Attempt, Completed: e.Completed,
		LeasedUntil: e.LeasedUntil.Std(), Status: e.Status, Retention: millis(e.RetentionMS), Tags: e.Tags,
		Schedules: e.Schedules,
	}
	return found
}

func fromTagOverview(t *report.TagOverview) TagOverview {
	v := TagOverview{
		Tag: t.Tag, Counts: t.Counts, Capped: t.Capped, Overdue: DueTasks(t.Overdue), OldestDue: Time(t.OldestDue),
		Paused: t.Paused, PausedSince: Time(t.PausedSince), PausedBy: t.PausedBy,
		Reason:   t.Reason,
		Nodes:    each(t.Nodes, func(n *report.NodeRef) NodeRef { return NodeRef(*n) }),
		Lateness: fromSeriesLateness(t.Started, t.P50, t.P99, t.Max),
		LastHour: each(t.LastHour, func(s *report.HourStep) HourStep {
			return HourStep{
				Completed: s.Completed, Retried: s.Retried, Failed: s.Failed, P99MS: Milliseconds(s.P99),
			}
		}),
		Due: each(t.Due, fromDue),
	}
	if v.Counts == nil {
		v.Counts = map[delaytask.Status]int64{}
	}
	return v
}

func (t *TagOverview) to() report.TagOverview {
	o := report.TagOverview{
		Tag: t.Tag, Counts: t.Counts, Capped: t.Capped, Overdue: report.DueTasks(t.Overdue),
		OldestDue: t.OldestDue.Std(), Paused: t.Paused, PausedSince: t.PausedSince.Std(), PausedBy: t.PausedBy,
		Reason: t.Reason,
		Nodes:  each(t.Nodes, func(n *NodeRef) report.NodeRef { return report.NodeRef(*n) }),
		LastHour: each(t.LastHour, func(s *HourStep) report.HourStep {
			return report.HourStep{Completed: s.Completed, Retried: s.Retried, Failed: s.Failed, P99: exact(s.P99MS)}
		}),
	}
	if len(t.Due) > 0 {
		o.Due = each(t.Due, toDue)
	}
	o.Started, o.P50, o.P99, o.Max = t.Lateness.to()
	return o
}
