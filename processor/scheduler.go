package processor

import (
	"context"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/report"
)

// Scheduler is what the library and the client of the service have in common: *scheduler.Scheduler, which works on the
// program's own database, and *client.Client, which calls the service. A program that uses this interface moves from
// one to the other by changing one constructor.
//
// Only the library can save, change and complete tasks inside a transaction of the caller's database.
type Scheduler interface {
	Registrar
	Use(mw ...Middleware) error
	Unregister(tag string) bool
	Start(ctx context.Context) error
	Stop(ctx context.Context) error

	Saver
	SaveDelayTasks(ctx context.Context, items []delaytask.Item) ([]delaytask.SaveResult, error)

	Popper
	delaytask.Leases
	FinishAll(ctx context.Context, tokens []delaytask.Token) ([]error, error)

	Changer
	Reporter
	Schedules
}

// Registrar takes processors: *scheduler.Scheduler, *client.Client, *client.Receiver and a [Scheduler].
type Registrar interface {
	Register(tag string, p Processor, opts ...RegisterOption) error
}

// Saver saves tasks: *scheduler.Scheduler, *client.Client, and a [Scheduler].
type Saver interface {
	SaveDelayTask(
		ctx context.Context, tag string, body any, delay time.Duration, opts ...delaytask.Option,
	) (int64, error)
}

// TxSaver saves tasks in a transaction of the caller: *scheduler.Scheduler alone. The service has no part in it.
type TxSaver interface {
	SaveDelayTaskTx(
		ctx context.Context, tx delaytask.Tx, tag string, body any, delay time.Duration, opts ...delaytask.Option,
	) (int64, error)
}

// Popper hands out tasks that are due: *scheduler.Scheduler, *client.Client, and a [Scheduler].
type Popper interface {
	Pop(ctx context.Context, tag string, opts ...delaytask.PopOption) ([]*delaytask.Popped, error)
}

// Changer reads tasks and changes them, one by one or all of a tag.
type Changer interface {
	Get(ctx context.Context, ref delaytask.Ref) (delaytask.TaskRow, error)
	Wait(ctx context.Context, id int64) (delaytask.TaskRow, error)
	List(ctx context.Context, f delaytask.Filter) (delaytask.Page, error)
	Cancel(ctx context.Context, ref delaytask.Ref, opts ...delaytask.ChangeOption) (delaytask.Status, error)
	Reschedule(
		ctx context.Context, ref delaytask.Ref, delay time.Duration, opts ...delaytask.ChangeOption,
	) (delaytask.Status, error)
	SetBody(
		ctx context.Context, ref delaytask.Ref, body any, opts ...delaytask.ChangeOption,
	) (delaytask.Status, error)
	Retry(ctx context.Context, ref delaytask.Ref) error
	Pause(ctx context.Context, tag string, opts ...delaytask.PauseOption) error
	Resume(ctx context.Context, tag string) error
}

// Reporter tells what operators read.
type Reporter interface {
	Explain(ctx context.Context, ref delaytask.Ref) (report.Explanation, error)
	Tags(ctx context.Context) ([]report.TagState, error)
	Nodes(ctx context.Context) ([]report.Node, error)
	Stats(ctx context.Context) ([]report.TagStats, error)
	Failures(ctx context.Context, tag string) (report.Failures, error)
	Forecast(ctx context.Context, f report.ForecastFilter) (report.Forecast, error)
	Series(ctx context.Context, f report.SeriesFilter) (report.Series, error)
	Overview(ctx context.Context) (report.Overview, error)
	Audit(ctx context.Context, f report.AuditFilter) (report.AuditPage, error)
}

// Schedules is what can be done with schedules.
type Schedules interface {
	SaveSchedule(
		ctx context.Context, name string, when delaytask.Spec, tag string, body any, opts ...delaytask.Option,
	) (delaytask.Schedule, error)
	GetSchedule(ctx context.Context, name string) (delaytask.Schedule, error)
	ListSchedules(ctx context.Context, f delaytask.ScheduleFilter) (delaytask.SchedulePage, error)
	DeleteSchedule(ctx context.Context, name string) error
	PauseSchedule(ctx context.Context, name string, opts ...delaytask.PauseOption) error
	ResumeSchedule(ctx context.Context, name string) error
	ResetSchedule(ctx context.Context, name string) error
	SkipTick(ctx context.Context, name string) (tick time.Time, err error)
	TriggerSchedule(ctx context.Context, name string, beside bool) (id int64, err error)
	Backfill(ctx context.Context, name string, from, to time.Time, atOnce int) (backfill string, err error)
	ScheduleTicks(ctx context.Context, name string, before time.Time, limit int) ([]delaytask.ScheduleTick, error)
	ExplainSchedule(ctx context.Context, name string, tick time.Time) (report.ScheduleExplanation, error)
}

// ScheduleDeclarer takes schedules that a program declares: *scheduler.Scheduler alone. The service declares none.
type ScheduleDeclarer interface {
	DeclareSchedule(name string, when delaytask.Spec, tag string, body any, opts ...delaytask.Option) error
}
