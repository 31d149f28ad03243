package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

type schedulePauseInput struct {
	ScheduleInput
	Body *wire.Pause
}

type scheduleTriggerInput struct {
	ScheduleInput
	Body *wire.ScheduleTrigger
}

type scheduleBackfillInput struct {
	ScheduleInput
	Body wire.ScheduleBackfill
}

func (a *API) operateScheduleOperations() {
	operation := func(name, id, summary, description string, status int) huma.Operation {
		op := a.operation(http.MethodPost, schedulePath+"/"+name, id, summary,
			description+" It needs the verb operate.", groupSchedules)
		op.DefaultStatus = status
		return op
	}
	huma.Register(a.spec, operation("pause", "pauseSchedule", "Pause a schedule",
		"A run that has not begun is withdrawn. Ticks of the pause do not count as missed.", http.StatusNoContent),
		a.pauseSchedule)
	huma.Register(a.spec, operation("resume", "resumeSchedule", "End the pause of a schedule",
		"It goes on with the first tick that is to come.", http.StatusNoContent),
		a.onSchedule(a.operator.ResumeSchedule))
	huma.Register(a.spec, operation("reset", "resetSchedule", "Set a schedule to its first tick that is to come",
		"For a database whose clock was ahead.", http.StatusNoContent),
		a.onSchedule(a.operator.ResetSchedule))
	huma.Register(a.spec, operation("skip", "skipTick", "Leave out the next tick of a schedule",
		"Answers the tick.", http.StatusOK), a.skipTick)
	huma.Register(a.spec, operation("trigger", "triggerSchedule", "Run a schedule once, now",
		"In any state; its ticks stay as they are. 409 schedule_busy while a run executes, unless beside is true.",
		http.StatusOK), a.triggerSchedule)
	huma.Register(a.spec, operation("backfill", "backfillSchedule", "Run the past ticks of a schedule",
		"Each once, the oldest first, both ends of the range included, with the lowest priority. A new "+
			"schedule holds these runs.", http.StatusCreated), a.backfillSchedule)
}

func (a *API) pauseSchedule(ctx context.Context, in *schedulePauseInput) (*struct{}, error) {
	return nil, a.problem(a.operator.PauseSchedule(ctx, by(ctx), in.Name, reasonOf(in.Body)))
}

func (a *API) skipTick(ctx context.Context, in *ScheduleInput) (*output[wire.ScheduleSkipped], error) {
	tick, err := a.operator.SkipTick(ctx, by(ctx), in.Name)
	return outputOf(a, wire.ScheduleSkipped{Tick: wire.Time(tick)}, err)
}

func (a *API) triggerSchedule(ctx context.Context, in *scheduleTriggerInput) (*output[wire.ScheduleTriggered], error) {
	id, err := a.operator.TriggerSchedule(ctx, by(ctx), in.Name, in.Body != nil && in.Body.Beside)
	return outputOf(a, wire.ScheduleTriggered{ID: wire.ID(id)}, err)
}

func (a *API) backfillSchedule(
	ctx context.Context, in *scheduleBackfillInput,
) (*output[wire.ScheduleBackfilled], error) {
	if in.Body.From == nil || in.Body.To == nil {
		return nil, a.problem(fmt.Errorf("%w: send from and to", delaytask.ErrInvalidRange))
	}
	name, err := a.operator.Backfill(ctx, by(ctx), in.Name, in.Body.From.Std(), in.Body.To.Std(),
		cmp.Or(in.Body.AtOnce, 1))
	return outputOf(a, wire.ScheduleBackfilled{Name: name}, err)
}
