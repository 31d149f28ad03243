// Package bridge lets other packages of this module do with a scheduler what users cannot: package delaytasktest makes
// one on an engine of its own, and the service reaches the store and the reserved keys. It holds functions that package
// delaytask sets once, when it is initialised.
package bridge

import (
	"context"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/eyes/overview"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/store"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/report"
)

// NewScheduler returns a *scheduler.Scheduler on the store. cfg is a scheduler.Config; build gets what is made of it
// and of the defaults, and returns the engine. The types are any because this package lies below delaytask.
var NewScheduler func(
	cfg any, store store.Store, build func(engine.Config) (*engine.Engine, error),
) (scheduler any, err error)

// Store returns the store of a *scheduler.Scheduler.
var Store func(scheduler any) store.Store

// Bulks returns the bulk changes of a *scheduler.Scheduler. Its Stop ends them.
var Bulks func(scheduler any) *bulk.Runs

// Nodes is the Nodes of a *scheduler.Scheduler. With each node comes the token of its process, which the executors of
// its tasks hold.
var Nodes func(ctx context.Context, scheduler any) (nodes []report.Node, tokens []string, err error)

// Registered returns what a tag was registered with at a *scheduler.Scheduler, and whether it was.
var Registered func(scheduler any, tag string) (processor.Registration, bool)

// ClockWidth returns how far the bounds of the database's clock are apart in the process of a *scheduler.Scheduler. It
// is false while no task may start.
var ClockWidth func(scheduler any) (time.Duration, bool)

// Warning returns what an operator has to mend although a *scheduler.Scheduler is ready, "" when it knows of nothing.
var Warning func(scheduler any) string

// Overview is the OverviewFor of a *scheduler.Scheduler, with the advice of each finding, to write it in another
// language.
var Overview func(
	ctx context.Context, scheduler any, f report.OverviewFilter,
) (report.Overview, []overview.Advice, error)

// Explain is the Explain of a *scheduler.Scheduler, with the sentences of its Text.
var Explain func(
	ctx context.Context, scheduler any, ref delaytask.Ref,
) (report.Explanation, sentence.Text, error)

// ExplainSchedule is the ExplainSchedule of a *scheduler.Scheduler, with the sentences of its Text.
var ExplainSchedule func(
	ctx context.Context, scheduler any, name string, tick time.Time,
) (report.ScheduleExplanation, sentence.Text, error)

// Save is the SaveDelayTask of a *scheduler.Scheduler with a delaytask.Item. It also returns the stored
// delaytask.TaskRow, without Created and Updated, which the database sets: a caller that shows it need not read it. The
// task is nil where it may be that of an earlier save: with an error, and where a task had the id that the caller has
// chosen. A task that was rescheduled is the existing one that carries the key.
var Save func(ctx context.Context, scheduler, item any) (id int64, task any, rescheduled bool, err error)

// CheckSave returns what the SaveDelayTask of a *scheduler.Scheduler would refuse a delaytask.Item for before it asks
// the database.
var CheckSave func(scheduler, item any) error

// CheckFilter returns what the List, CancelAll and RetryAll of a scheduler would refuse a delaytask.Filter for before
// they ask the database.
var CheckFilter func(filter any) error

// Complete ends a pending task of a *scheduler.Scheduler that has the version of the token. It returns ErrLeaseLost
// when the task is not pending, or has another version by now.
var Complete func(ctx context.Context, scheduler any, token delaytask.Token) error

// Unclaim releases a task that was popped from a *scheduler.Scheduler but not delivered to the caller of the pop. It
// returns errors as Release does.
var Unclaim func(ctx context.Context, scheduler any, token delaytask.Token) error

// SaveOption returns a delaytask.Option that gives a task a key which begins with "s3:". It returns ErrInvalidKey when
// the key does not, or cannot be one.
var SaveOption func(key string) any
