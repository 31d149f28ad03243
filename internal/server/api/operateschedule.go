package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/audit"
	"github.com/delaytask/delaytask/internal/server/access"
	"github.com/delaytask/delaytask/internal/wire"
)

type schedulePauseInput struct {
	ScheduleInput
	Body *wire.SchedulePause
}

type scheduleTriggerInput struct {
	ScheduleInput
	Body *wire.ScheduleTrigger
}

type scheduleTriggeredOutput struct{ Body wire.ScheduleTriggered }

type scheduleSkippedOutput struct{ Body wire.ScheduleSkipped }

type scheduleBackfillInput struct {
	ScheduleInput
	Body wire.ScheduleBackfill
}

type scheduleBackfilledOutput struct{ Body wire.ScheduleBackfilled }

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
		a.operateSchedule(audit.ResumeSchedule, a.scheduler.ResumeSchedule))
	huma.Register(a.spec, operation("reset", "resetSchedule", "Set a schedule to its first tick that is to come",
		"For a database whose clock was ahead.", http.StatusNoContent),
		a.operateSchedule(audit.ResetSchedule, a.scheduler.ResetSchedule))
	huma.Register(a.spec, operation("skip", "skipTick", "Leave out the next tick of a schedule",
		"Answers the tick.", http.StatusOK), a.skipTick)
	huma.Register(a.spec, operation("trigger", "triggerSchedule", "Run a schedule once, now",
		"In any state; its ticks stay as they are. 409 schedule_busy while a run executes, unless beside is true.",
		http.StatusOK), a.triggerSchedule)
	huma.Register(a.spec, operation("backfill", "backfillSchedule", "Run the past ticks of a schedule",
		"Each once, the oldest first, both ends of the range included, with the lowest priority. The runs are those "+
			"of a schedule of their own.", http.StatusCreated), a.backfillSchedule)
}

// operated does something to a schedule, if the caller has the right to.
func (a *API) operated(
	ctx context.Context, action audit.Action, name, detail string, do func(context.Context) error,
) error {
	return a.changeSchedule(ctx, access.Operate, action, name, detail, do)
}

// changeSchedule does something to a schedule, if the caller has this right to its tag. The tag is read before, for the
// audit log; the right is checked again with the change.
func (a *API) changeSchedule(
	ctx context.Context, verb access.Verb, action audit.Action, name, detail string, do func(context.Context) error,
) error {
	ctx, err := onSchedule(ctx, verb, name)
	if err != nil {
		return a.problem(err)
	}
	s, err := a.scheduler.GetSchedule(ctx, name)
	if err != nil {
		return a.problem(err)
	}
	err = a.audited(ctx, audit.Act{Action: action, Target: name, Tag: s.Tag, Detail: detail}, do)
	if err != nil {
		return a.problem(err)
	}
	return nil
}

func (a *API) operateSchedule(
	action audit.Action, do func(context.Context, string) error,
) func(context.Context, *ScheduleInput) (*struct{}, error) {
	return func(ctx context.Context, in *ScheduleInput) (*struct{}, error) {
		return nil, a.operated(ctx, action, in.Name, "", func(ctx context.Context) error { return do(ctx, in.Name) })
	}
}

func (a *API) pauseSchedule(ctx context.Context, in *schedulePauseInput) (*struct{}, error) {
	var reason string
	if in.Body != nil {
		reason = in.Body.Reason
	}
	return nil, a.operated(ctx, audit.PauseSchedule, in.Name, reason, func(ctx context.Context) error {
		return a.scheduler.PauseSchedule(ctx, in.Name, reason)
	})
}

func (a *API) skipTick(ctx context.Context, in *ScheduleInput) (out *scheduleSkippedOutput, err error) {
	err = a.operated(ctx, audit.SkipTick, in.Name, "", func(ctx context.Context) error {
		tick, err := a.scheduler.SkipTick(ctx, in.Name)
		out = &scheduleSkippedOutput{wire.ScheduleSkipped{Tick: wire.Time(tick)}}
		return err
	})
	return out, err
}

func (a *API) triggerSchedule(
	ctx context.Context, in *scheduleTriggerInput,
) (out *scheduleTriggeredOutput, err error) {
	beside := in.Body != nil && in.Body.Beside
	detail := ""
	if beside {
		detail = "beside"
	}
	err = a.operated(ctx, audit.RunSchedule, in.Name, detail, func(ctx context.Context) error {
		id, err := a.scheduler.TriggerSchedule(ctx, in.Name, beside)
		out = &scheduleTriggeredOutput{wire.ScheduleTriggered{ID: wire.ID(id)}}
		return err
	})
	return out, err
}

func (a *API) backfillSchedule(
	ctx context.Context, in *scheduleBackfillInput,
) (out *scheduleBackfilledOutput, err error) {
	if in.Body.From == nil || in.Body.To == nil {
		return nil, a.problem(fmt.Errorf("%w: send from and to", delaytask.ErrInvalidRange))
	}
	detail := audit.RangeText(in.Body.From.Std(), in.Body.To.Std())
	err = a.operated(ctx, audit.BackfillSchedule, in.Name, detail, func(ctx context.Context) error {
		name, err := a.scheduler.Backfill(ctx, in.Name, in.Body.From.Std(), in.Body.To.Std(),
			cmp.Or(in.Body.AtOnce, 1))
		out = &scheduleBackfilledOutput{wire.ScheduleBackfilled{Name: name}}
		return err
	})
	return out, err
}
