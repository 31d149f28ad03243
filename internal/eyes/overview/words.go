package overview

import (
	"fmt"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// MostError is how much of an error a sentence has, in bytes.
const MostError = 200

const fewTags = 5 // that a sentence names

// Words says what a finding is and what to do about it, for those who write it in another language than English.
func Words(f *report.Finding) (text, do sentence.Sentence) {
	count := sentence.Count{N: f.Number, AtLeast: f.AtLeast}
	e := &f.Evidence
	switch f.Code {
	case report.FindingTwoDatabases:
		text = sentence.Of(sentence.TwoDatabases, strings.Join(e.Servers, ", "))
		do = sentence.Of(sentence.DoTwoDatabases)
	case report.FindingReplica:
		text, do = sentence.Of(sentence.ServerReadOnly), sentence.Of(sentence.DoReplica)
		if len(e.Servers) > 0 {
			text = sentence.Of(sentence.Replica, e.Servers[0])
		}
	case report.FindingClockHeld:
		text, do = sentence.Of(sentence.ClockHeld), sentence.Of(sentence.DoClockHeld)
	case report.FindingClockWide:
		text = sentence.Of(sentence.ClockWide, e.ClockWidth.Round(time.Millisecond))
		do = sentence.Of(sentence.DoClockWide)
	case report.FindingUnserved:
		text, do = sentence.Of(sentence.Unserved, count), sentence.Of(sentence.DoUnserved)
	case report.FindingPausedOverdue:
		text = sentence.Of(sentence.PausedOverdue, count)
		do = onTag(f.Tag, sentence.Command("resume")+" "+sentence.Argument(f.Tag))
	case report.FindingOverdue:
		text, do = sentence.Of(sentence.Overdue, count, served(e)), explain(f.Task)
	case report.FindingLeaseOver:
		text, do = sentence.Of(sentence.LeaseOver, count), explain(f.Task)
	case report.FindingRowsLocked:
		text, do = sentence.Of(sentence.RowsLocked, e.Thread, f.Number), sentence.Of(sentence.DoRowsLocked, e.Thread)
		switch {
		case e.Thread == "":
			text, do = sentence.Of(sentence.RangeLocked, few(e.Tags)), sentence.Of(sentence.DoRangeLocked)
		case e.MayLock:
			text.Code = sentence.RowsMayBeLocked
		}
		if e.Thread != "" && len(e.Tags) > 0 {
			text = sentence.Of(sentence.HoldsUp, text, few(e.Tags))
		}
	case report.FindingHanging:
		text = sentence.Of(sentence.Hanging, sentence.ID(f.Task), e.Attempt)
		do = sentence.Of(sentence.DoHanging)
	case report.FindingFailing:
		text, do = sentence.Of(sentence.Failing, count), onTag(f.Tag, sentence.Command("failures", "tag", f.Tag))
	case report.FindingRetrying:
		text = sentence.Of(sentence.Retrying, f.Number, e.Completed)
		do = onTag(f.Tag, sentence.Command("list", "status", "pending", "tag", f.Tag))
	case report.FindingNodeSilent:
		text = sentence.Of(sentence.NodeSilent, f.Node.Number, f.Node.Name)
		if f.Number > 0 {
			text = sentence.Of(sentence.NodeSilentHolds, f.Node.Number, f.Node.Name,
				sentence.Of(sentence.LeasedToIt, count), e.LeasedUntil)
		}
		do = sentence.Of(sentence.DoNodeSilent)
	case report.FindingScheduleBehind:
		text, do = sentence.Of(sentence.SchedulesBehind, few(e.Schedules)), onSchedule(e.Schedules[0])
	case report.FindingSchedulePaused:
		text = sentence.Of(sentence.SchedulesPaused, few(e.Schedules))
		if f.Error != "" {
			text = sentence.Of(sentence.SchedulesPausedOf, few(e.Schedules),
				sentence.Quote(row.Shorten(f.Error, MostError)))
		}
		return text, onSchedule(e.Schedules[0])
	case report.FindingScheduleUnsuccessful:
		text, do = sentence.Of(sentence.SchedulesUnsuccessful, few(e.Schedules)), onSchedule(e.Schedules[0])
	case report.FindingPurgeBehind:
		text = sentence.Of(sentence.PurgeBehind, sentence.Of(sentence.Status+sentence.Code(e.Status)), e.Retention,
			few(e.Tags))
		do = sentence.Of(sentence.DoPurgeBehind)
	}
	if f.Error != "" {
		text = sentence.Of(sentence.MostOften, text, sentence.Quote(row.Shorten(f.Error, MostError)))
	}
	return text, do
}

func served(e *report.Evidence) sentence.Sentence {
	by := sentence.Of(sentence.ServedByPops)
	if e.Nodes > 0 {
		by = sentence.Of(sentence.ServedBy, e.Nodes)
	}
	if n := e.Executing; n != nil {
		by = sentence.Of(sentence.ServedExecuting, by, sentence.Count{N: n.Tasks, AtLeast: n.Precision != report.Exact})
	}
	return by
}

// onTag returns the command on a tag. A tag that was written by hand may be anything, and is in no command.
func onTag(tag, command string) sentence.Sentence {
	if !delaytask.ValidTag(tag) {
		return sentence.Of(sentence.DoTagInvalid)
	}
	return sentence.Of(sentence.DoCommand, command)
}

func onSchedule(name string) sentence.Sentence {
	return sentence.Of(sentence.DoCommand, sentence.Command("schedule explain")+" "+sentence.Argument(name))
}

func explain(task int64) sentence.Sentence {
	return sentence.Of(sentence.DoCommand, fmt.Sprintf("delaytask explain %d", task))
}

// few returns names as a parameter of a sentence.
func few(names []string) any {
	if len(names) > fewTags {
		return sentence.Of(sentence.FewOfMore, strings.Join(names[:fewTags], ", "), len(names)-fewTags)
	}
	return strings.Join(names, ", ")
}
