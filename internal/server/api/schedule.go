package api

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/wire"
)

// ScheduleInput names a schedule.
type ScheduleInput struct {
	Name string `path:"name" doc:"A slash in it is written %2F; . and .. are written .~ and ..~"`
}

type scheduleSaveInput struct {
	ScheduleInput
	IfMatch     string `header:"If-Match" doc:"An ETag: 412 schedule_changed if another definition was saved since"`
	IfNoneMatch string `header:"If-None-Match" doc:"* : 412 schedule_exists if there is a schedule of the name"`
	Body        wire.ScheduleSave
}

// scheduleOutput is a schedule and its version.
type scheduleOutput struct {
	ETag string `header:"ETag" doc:"The version, for If-Match"`
	Body wire.Schedule
}

func scheduleOutputOf(s wire.Schedule) *scheduleOutput {
	return &scheduleOutput{strconv.Quote(strconv.FormatInt(s.Version, 10)), s}
}

// conditions are the options that the headers ask for.
func (in *scheduleSaveInput) conditions() (options []delaytask.Option, err error) {
	if in.IfNoneMatch != "" {
		if in.IfNoneMatch != "*" {
			return nil, wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidParameter,
				"header If-None-Match: want *, which refuses to replace a schedule")
		}
		options = append(options, delaytask.WithIfNew())
	}
	if in.IfMatch != "" {
		text, ok := strings.CutPrefix(in.IfMatch, `"`)
		text, closed := strings.CutSuffix(text, `"`)
		version, err := strconv.ParseInt(text, 10, 64)
		if !ok || !closed || err != nil || version < 0 {
			return nil, wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidParameter,
				"header If-Match: want the ETag of an answer about the schedule, a version in quotes")
		}
		options = append(options, delaytask.WithIfVersion(version))
	}
	return options, nil
}

// scheduleRawInput names a schedule to show.
type scheduleRawInput struct {
	ScheduleInput
	RawInput
}

type scheduleTicksInput struct {
	ScheduleInput
	Before string `query:"before" doc:"Only ticks before this time; default: all"`
	Limit  int    `query:"limit" doc:"Default 100, at most 1,000"`
	RawInput
}

type scheduleExplainInput struct {
	ScheduleInput
	Tick string `query:"tick" doc:"The tick in question; default: how the schedule stands"`
	RawInput
}

const (
	schedulesPath = "/v1/schedules"
	schedulePath  = schedulesPath + "/{name}"
)

func (a *API) scheduleOperations() {
	huma.Register(a.spec, a.operation(http.MethodPut, schedulePath, "saveSchedule", "Save a schedule",
		"Stores it, or gives the one of the name this definition: what is planted and has not begun is planted anew, "+
			"and nothing that was due before runs at once. It needs the verb schedule for the tag, and for the tag "+
			"of the schedule that it replaces; for the tag http also save_http. previewSchedule says how "+
			"lines are written. 409 schedule_owned: a program declares it. If-Match and If-None-Match guard what "+
			"another caller has saved.",
		groupSchedules), a.saveSchedule)
	huma.Register(a.spec, a.operation(http.MethodGet, schedulePath, "getSchedule", "Show a schedule",
		"Its definition and its state.", groupSchedules), a.getSchedule)
	remove := a.operation(http.MethodDelete, schedulePath, "deleteSchedule", "Delete a schedule",
		"With its history and its backfills. A run that executes goes on. It needs the verb schedule; for the tag "+
			"http also save_http.", groupSchedules)
	remove.DefaultStatus = http.StatusNoContent
	huma.Register(a.spec, remove, a.onSchedule(a.operator.DeleteSchedule))
	huma.Register(a.spec, a.operation(http.MethodGet, schedulePath+"/ticks", "listScheduleTicks",
		"List what became of the ticks of a schedule", "The newest first.", groupSchedules), a.scheduleTicks)
	huma.Register(a.spec, a.operation(http.MethodGet, schedulePath+"/explain", "explainSchedule",
		"Explain a schedule", "Why it does not run, or with a tick what became of that.", groupSchedules),
		a.explainSchedule)
}

func (a *API) saveSchedule(ctx context.Context, in *scheduleSaveInput) (*scheduleOutput, error) {
	options, err := scheduleOptions(&in.Body)
	if err != nil {
		return nil, a.problem(err)
	}
	conditions, err := in.conditions()
	if err != nil {
		return nil, err
	}
	body, err := bodyOf(in.Body.Body, in.Body.BodyText)
	if err != nil {
		return nil, a.problem(err)
	}
	when := &in.Body.Spec
	s, err := a.operator.SaveSchedule(ctx, by(ctx), in.Name, when.To(), in.Body.Tag, body,
		append(options, conditions...)...)
	if err != nil {
		return nil, a.problem(err)
	}
	if !access.From(ctx).May(access.Read, s.Tag) {
		// What it has done so far is not for a caller without Read. The definition is the caller's own.
		return scheduleOutputOf(wire.Schedule{Name: s.Name, Tag: s.Tag, State: s.State, Version: s.Version,
			Spec: in.Body.Spec, NextTick: wire.Time(s.NextTick), NextDue: wire.Time(s.NextDue)}), nil
	}
	return scheduleOutputOf(wire.FromSchedule(&s)), nil
}

func scheduleOptions(s *wire.ScheduleSave) ([]delaytask.Option, error) {
	options := request.ScheduleOptions(&delaytask.Schedule{
		Jitter: s.Jitter.Std(), PauseAfter: s.PauseAfter, MaxRuns: s.MaxRuns, Overlap: s.Overlap,
		MaxOpen: s.MaxOpen, Missed: s.Missed, StartWithin: s.StartWithin.Std(), KeepRuns: s.KeepRuns,
		RetryPastNext: s.RetryPastNext,
	})
	ofTasks, err := optionsOf(&wire.Save{
		App: s.App, TTR: s.TTR, MaxAttempts: s.MaxAttempts, NoAttemptLimit: s.NoAttemptLimit, Priority: s.Priority,
		Headers: s.Headers,
	})
	return append(options, ofTasks...), err
}

func (a *API) getSchedule(ctx context.Context, in *scheduleRawInput) (*scheduleOutput, error) {
	s, err := a.view(ctx, in.RawInput).Schedule(ctx, in.Name)
	return scheduleOutputOf(scheduleOf(&s)), a.problem(err)
}

func (a *API) scheduleTicks(ctx context.Context, in *scheduleTicksInput) (*output[wire.ScheduleTicks], error) {
	before, err := wire.ParseTime("before", in.Before)
	if err != nil {
		return nil, a.problem(err)
	}
	ticks, err := a.view(ctx, in.RawInput).Ticks(ctx, in.Name, before, in.Limit)
	return outputOf(a, wire.FromScheduleTicks(ticks), err)
}

func (a *API) explainSchedule(
	ctx context.Context, in *scheduleExplainInput,
) (*output[wire.ScheduleExplanation], error) {
	tick, err := wire.ParseTime("tick", in.Tick)
	if err != nil {
		return nil, a.problem(err)
	}
	e, err := a.view(ctx, in.RawInput).ExplainSchedule(ctx, in.Name, tick)
	if err != nil {
		return nil, a.problem(err)
	}
	shown := wire.FromScheduleExplanation(&e.ScheduleExplanation)
	shown.Schedule.Redacted = e.Schedule.Redacted
	return &output[wire.ScheduleExplanation]{shown}, nil
}

// onSchedule serves what is done to a schedule without an answer.
func (a *API) onSchedule(
	do func(context.Context, operate.By, string) error,
) func(context.Context, *ScheduleInput) (*struct{}, error) {
	return func(ctx context.Context, in *ScheduleInput) (*struct{}, error) {
		return nil, a.problem(do(ctx, by(ctx), in.Name))
	}
}
