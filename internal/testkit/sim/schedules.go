package sim

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/schedules/decide"
	planner "github.com/delaytask/delaytask/internal/schedules/plan"
	"github.com/delaytask/delaytask/internal/schedules/spec"
	"github.com/delaytask/delaytask/internal/testkit/journal"
)

// keeper is an operator of one schedule, who works through any node.
type keeper struct {
	world *world
	id    int
	name  string
	n     int // operations so far
}

// The beginnings of bodies: dull runs behave as all tasks do. Slow ones take seconds, also when the faults are over.
// Bad ones often fail for good, so that operators retry them.
const (
	dull = "run of "
	slow = "slow run of "
	bad  = "bad run of "
)

func (w *world) newKeeper(id int) *keeper {
	return &keeper{world: w, id: id, name: fmt.Sprintf("job.%d", id)}
}

// work saves the schedule, changes it while the faults last, and lets it go on in the end if it is paused.
func (k *keeper) work() {
	w := k.world
	first := w.draw("keeper", k.id)
	w.rest(oneOf(first, 0, first.between(0, w.faults/2)))
	for !w.isCalm() && k.do(first, "save", k.save(first)) != nil {
		w.rest(300 * time.Millisecond)
	}
	for k.n = 1; ; k.n++ {
		d := w.draw("keeper", k.id, k.n)
		if !w.rest(d.about(w.scheduleOps)) {
			break
		}
		k.operate(d)
	}
	if last := w.draw("keeper ends", k.id); last.chance(.7) && wait(last.between(0, time.Second), w.over) {
		_ = k.do(last, "resume", k.change(decide.Resume))
	}
}

// operate asks for one change of the schedule.
func (k *keeper) operate(d draw) {
	switch n := d.IntN(100); {
	case n < 12:
		_ = k.do(d, "pause", k.change(func(st decide.State) (row.Decision, error) {
			return decide.Pause(st, "as the seed wants")
		}))
	case n < 30:
		_ = k.do(d, "resume", k.change(decide.Resume))
	case n < 38:
		_ = k.do(d, "save", k.save(d))
	case n < 52:
		beside := d.chance(.3)
		_ = k.do(d, fmt.Sprintf("trigger, beside %v", beside), k.change(
			func(st decide.State) (row.Decision, error) {
				to, _, err := decide.Trigger(st, beside)
				return to, err
			}))
	case n < 60:
		_ = k.do(d, "skip", k.change(func(st decide.State) (row.Decision, error) {
			to, _, err := decide.SkipNext(st, "as the seed wants")
			return to, err
		}))
	case n < 64:
		_ = k.do(d, "delete", func(ctx context.Context, e *engine.Engine) error {
			return e.Schedules().Delete(ctx, k.name)
		})
		_ = k.do(d, "save", k.save(d))
	case n < 72:
		_ = k.do(d, "backfill", k.backfill(d))
	default:
		k.retry(d)
	}
}

// do asks any node, and writes down what it answers.
func (k *keeper) do(d draw, what string, ask func(context.Context, *engine.Engine) error) error {
	w := k.world
	l, e := w.anyLife(d)
	if e == nil {
		return context.Canceled
	}
	ctx, cancel := w.context(l, patience(d))
	defer cancel()
	op := fmt.Sprintf("%s op %d %s", k.name, k.n, what)
	w.note("operator", journal.CallSchedule, journal.Event{Op: op, Key: k.name, Detail: what})
	err := ask(ctx, e)
	w.note("operator", journal.ReturnSchedule, journal.Event{Op: op, Key: k.name, Detail: text(err)})
	return err
}

func (k *keeper) change(
	to func(decide.State) (row.Decision, error),
) func(context.Context, *engine.Engine) error {
	return func(ctx context.Context, e *engine.Engine) error {
		_, err := e.Schedules().Change(ctx, k.name, to)
		return err
	}
}

// save stores the schedule as some draw defines it.
func (k *keeper) save(d draw) func(context.Context, *engine.Engine) error {
	lines, options := k.define(d)
	sp, err := spec.Parse(delaytask.Spec{Lines: lines})
	if err != nil {
		panic(err) // the lines are ours
	}
	tag, body := oneOf(d, tags[0], tags[0], tags[1], evenTags[0]), dull+k.name
	switch k.id % 4 {
	case 0:
		body = slow + k.name
	case 1:
		body = bad + k.name
	}
	save, err := request.NewSchedule(k.name, delaytask.Spec{}, tag, body, request.Limits{}, options...)
	if err != nil {
		panic(err)
	}
	return func(ctx context.Context, e *engine.Engine) error {
		_, err := e.Schedules().Save(ctx, e.NewSchedule(&save), sp, planner.Only{})
		return err
	}
}

// define draws the ticks of a schedule and its settings. Schedules with a tick in each second are few.
func (k *keeper) define(d draw) (lines []string, options []delaytask.Option) {
	seconds := oneOf(d, 1+d.IntN(3), 2+d.IntN(5), 4+d.IntN(12), 20+d.IntN(100))
	if k.id%4 == 0 {
		seconds = 1 + d.IntN(4) // ticks fall due while its slow runs are open
	}
	switch d.IntN(5) {
	case 0:
		lines = []string{fmt.Sprintf("*/%d * * * * *", 2+seconds%29)}
	case 1:
		lines = []string{fmt.Sprintf("%d,%d * * * * *", seconds%60, seconds*7%60), "* * * * *"}
	case 2:
		lines = []string{fmt.Sprintf("@every %ds", seconds), fmt.Sprintf("!*/%d * * * * *", 2+d.IntN(9)), "@every 7s"}
	case 3:
		lines = []string{fmt.Sprintf("@every %ds/%ds", seconds+1, d.IntN(seconds+1))}
	default:
		lines = []string{fmt.Sprintf("@every %ds", seconds)}
	}
	options = append(options,
		delaytask.WithMissed(oneOf(d, delaytask.MissedOnce, delaytask.MissedSkip, delaytask.MissedAll)),
		delaytask.WithKeepRuns(1000))
	overlap := oneOf(d, delaytask.OverlapSkip, delaytask.OverlapQueueOne, delaytask.OverlapReplace,
		delaytask.OverlapAllow)
	options = append(options, delaytask.WithOverlap(overlap))
	if overlap == delaytask.OverlapAllow {
		options = append(options, delaytask.WithMaxOpen(1+d.IntN(4)))
	}
	if d.chance(.2) {
		options = append(options, delaytask.WithStartWithin(d.between(time.Second, 8*time.Second)))
	}
	if d.chance(.2) {
		options = append(options, delaytask.WithPauseAfter(1+d.IntN(3)))
	}
	if d.chance(.15) {
		options = append(options, delaytask.WithMaxRuns(1+d.IntN(9)))
	}
	if d.chance(.3) {
		options = append(options, delaytask.WithJitter(d.between(0, 5*time.Second)))
	}
	if d.chance(.2) {
		options = append(options, delaytask.WithRetryPastNext())
	}
	return lines, options
}

// backfill asks for the last ticks of the schedule again.
func (k *keeper) backfill(d draw) func(context.Context, *engine.Engine) error {
	return func(ctx context.Context, e *engine.Engine) error {
		st, err := e.Schedules().State(ctx, k.name)
		if err != nil {
			return err
		}
		last := st.Spec.Prev(st.Now.Std())
		first := last
		for range 4 + d.IntN(46) {
			first = st.Spec.Prev(first)
		}
		_, err = e.Schedules().Backfill(ctx, k.name, row.At(first), row.At(last), 1+d.IntN(3))
		return err
	}
}

// retry lets an old run of the schedule begin anew.
func (k *keeper) retry(d draw) {
	w := k.world
	_ = k.do(d, "retry", func(ctx context.Context, e *engine.Engine) error {
		runs, err := e.Schedules().Runs(ctx, k.name, 0, 20)
		if err != nil {
			return err
		}
		for _, r := range runs {
			if r.Outcome != row.OutcomeFailed {
				continue
			}
			op := fmt.Sprintf("%s op %d", k.name, k.n)
			w.note("operator", journal.CallRetry, journal.Event{Op: op, ID: r.TaskID})
			err = e.Retry(ctx, control.Ref{ID: r.TaskID})
			w.note("operator", journal.ReturnRetry,
				journal.Event{Op: op, ID: r.TaskID, Error: classOf(err), Detail: text(err)})
			return err
		}
		return nil
	})
}

// pace is how long a run takes that behaves. Slow ones let ticks fall due meanwhile, but not those that catch up: they
// would keep all slots. Once the faults are over, slow runs of each second would keep a tag's only slot, and its tasks
// late.
func (w *world) pace(task *delaytask.Task) time.Duration {
	if !isSlow(task) || task.Schedule.Cause != delaytask.CauseTick {
		return time.Millisecond
	}
	d := w.draw("pace", int(task.Schedule.Tick.Unix()))
	slowest := 3 * time.Second
	if w.isCalm() {
		slowest = time.Second
	}
	return oneOf(d, time.Millisecond, d.between(0, slowest))
}

func isSlow(task *delaytask.Task) bool { return isRun(task, slow) }

func isRun(task *delaytask.Task, kind string) bool {
	return task.Schedule != nil && strings.HasPrefix(string(task.Body), kind)
}
