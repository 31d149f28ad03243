package audit

import (
	"strings"
	"time"
	"unicode/utf8"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/row"
)

// Via is the way that an act has come. It is stored.
type Via string

// The ways.
const (
	API       Via = "api"
	Command   Via = "command"
	Dashboard Via = "dashboard"
	Library   Via = "library" // reserved
)

// Action is what is done. It is stored.
type Action string

// The actions.
const (
	CancelTask     Action = "task.cancel"
	RescheduleTask Action = "task.reschedule" // and, as the detail says, its body
	ChangeBody     Action = "task.body"
	RetryTask      Action = "task.retry"
	RevealBody     Action = "task.reveal"
	RevealSchedule Action = "schedule.reveal" // the body of its tasks

	CancelAll Action = "bulk.cancel"
	RetryAll  Action = "bulk.retry"
	StopBulk  Action = "bulk.stop"

	PauseTag  Action = "tag.pause"
	ResumeTag Action = "tag.resume"

	SaveSchedule     Action = "schedule.save"
	DeleteSchedule   Action = "schedule.delete"
	PauseSchedule    Action = "schedule.pause"
	ResumeSchedule   Action = "schedule.resume"
	ResetSchedule    Action = "schedule.reset"
	SkipTick         Action = "schedule.skip"
	RunSchedule      Action = "schedule.run"
	BackfillSchedule Action = "schedule.backfill"

	SaveReceiver   Action = "receiver.save"
	DeleteReceiver Action = "receiver.delete"

	CreateToken Action = "token.create"
	RevokeToken Action = "token.revoke"
)

// Actions returns the names of all actions.
func Actions() []string {
	var names []string
	for _, a := range []Action{
		CancelTask, RescheduleTask, ChangeBody, RetryTask, RevealBody, RevealSchedule, CancelAll, RetryAll,
		StopBulk, PauseTag, ResumeTag,
		SaveSchedule, DeleteSchedule, PauseSchedule, ResumeSchedule, ResetSchedule, SkipTick, RunSchedule,
		BackfillSchedule, SaveReceiver, DeleteReceiver, CreateToken, RevokeToken,
	} {
		names = append(names, string(a))
	}
	return names
}

// Single reports whether the action changes one task. Programs do so often, and people seldom.
func (a Action) Single() bool {
	return a == CancelTask || a == RescheduleTask || a == ChangeBody || a == RetryTask
}

// Act is what a caller is about to do. Texts that are too long are cut.
type Act struct {
	Who    string // name of the access token, or user@host; "" for callers that no token was asked of
	Via    Via
	Action Action
	Target string // id of the task, or name of the schedule, receiver or token; "": the tag, or what Detail says
	Tag    string // "": all tags, several, or none
	Detail string
}

func (a *Act) entry() row.AuditEntry {
	return row.AuditEntry{
		Who: a.who(), Via: string(a.Via), Action: string(a.Action),
		Target: cut(a.Target, row.AuditWhoBytes), Tag: cut(a.Tag, row.AuditTagBytes),
		Detail: cut(a.Detail, row.AuditDetailBytes),
	}
}

func (a *Act) who() string { return cut(a.Who, row.AuditWhoBytes) }

// cut returns at most so many bytes of a text, whole characters alone.
func cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	const mark = "…"
	end := most - len(mark)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// RangeText is the detail of a change of what is within two moments.
func RangeText(from, to time.Time) string { return "from=" + moment(from) + " to=" + moment(to) }

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// SpecText is the detail of a save of a schedule.
func SpecText(s delaytask.Spec) string {
	text := strings.Join(s.Lines, " ; ")
	if s.Zone != "" {
		text += " in " + s.Zone
	}
	return text
}
