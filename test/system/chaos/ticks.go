package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bench/lateness"
	"github.com/delaytask/delaytask/scheduler"
	"github.com/delaytask/delaytask/test/system/chaos/role"
)

// Schedules are planned through the whole of a chaos run. The table alone says afterwards whether each tick was decided
// once. The judge of tasks does not see their runs, which no saver has saved.

// hasSchedules reports whether the run has some. A run of chosen faults has none, and older programs know none.
func (o options) hasSchedules() bool { return o.only == "" && o.old == "" }

// periods are the periods of the schedules, in seconds. The names end with them.
var periods = []int{1, 2, 3, 5}

func (s *stage) saveSchedules(ctx context.Context, to *scheduler.Scheduler) error {
	if !s.opts.hasSchedules() {
		return nil
	}
	for _, overlap := range []delaytask.Overlap{
		delaytask.OverlapSkip, delaytask.OverlapQueueOne, delaytask.OverlapReplace, delaytask.OverlapAllow,
	} {
		for _, missed := range []delaytask.Missed{delaytask.MissedOnce, delaytask.MissedSkip, delaytask.MissedAll} {
			for _, period := range periods {
				name := fmt.Sprintf("%s/%s/%d", overlap, missed, period)
				when := delaytask.Every(time.Duration(period) * time.Second)
				_, err := to.SaveSchedule(ctx, name, when, role.TickTag, "", delaytask.WithOverlap(overlap),
					delaytask.WithMissed(missed), delaytask.WithKeepRuns(100_000))
				if err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// calm is how long schedules have, after the last fault, to come level with their ticks.
const calm = 15 * time.Second

// laws are what must hold of schedules when the faults are over: no query may find anything.
var laws = []struct{ broken, query string }{
	{"ticks that lie in no row of the history, or in two", `
		SELECT COUNT(*) FROM (
			SELECT s.name, r.tick,
				LAG(r.until_tick) OVER (PARTITION BY r.schedule_id ORDER BY r.tick, r.cause) AS before_it
			FROM delay_task_schedule_run AS r JOIN delay_task_schedule AS s ON s.id = r.schedule_id
		) AS h WHERE before_it IS NOT NULL
			AND TIMESTAMPDIFF(SECOND, before_it, tick) <> CAST(SUBSTRING_INDEX(name, '/', -1) AS UNSIGNED)`},
	{"runs that started early", `
		SELECT COUNT(*) FROM delay_task_message WHERE schedule IS NOT NULL AND execution_time < expected_time`},
	{"serial runs that were open together", `
		SELECT COUNT(*) FROM (
			SELECT create_time, LAG(create_time) OVER (PARTITION BY schedule ORDER BY create_time) AS begun,
				LAG(COALESCE(finish_time, '9999-01-01')) OVER (PARTITION BY schedule ORDER BY create_time) AS ended
			FROM delay_task_message WHERE schedule IS NOT NULL AND schedule NOT LIKE 'allow/%'
		) AS t WHERE begun IS NOT NULL AND create_time < ended`},
	{"rows of the history without their task", `
		SELECT COUNT(*) FROM delay_task_schedule_run AS r LEFT JOIN delay_task_message AS t ON t.id = r.task_id
		WHERE r.task_id IS NOT NULL AND t.id IS NULL`},
	// Of a run that was taken back before it began, the history has the tick, which was decided anew.
	{"runs without their row of the history", `
		SELECT COUNT(*) FROM delay_task_message AS t
		LEFT JOIN delay_task_schedule_run AS r ON r.task_id = t.id WHERE t.schedule IS NOT NULL AND r.tick IS NULL
			AND NOT (t.status = 4 AND t.execution_time IS NULL AND t.attempt = 0)`},
	// One that runs all missed ticks, one at a time, may still be at it.
	{"schedules that are behind", `
		SELECT COUNT(*) FROM delay_task_schedule WHERE next_time IS NULL
			OR IF(name LIKE '%/all/%', look_time, next_time) < UTC_TIMESTAMP(6) - INTERVAL 10 SECOND`},
}

// judgeSchedules returns errViolated when a law is broken.
func (s *stage) judgeSchedules(ctx context.Context) error {
	if !s.opts.hasSchedules() {
		return nil
	}
	if err := lateness.Pass(ctx, calm); err != nil {
		return err
	}
	var broken []error
	for _, law := range laws {
		n := 0
		if err := s.world.Admin.QueryRowContext(ctx, law.query).Scan(&n); err != nil {
			return fmt.Errorf("look for %s: %w", law.broken, err)
		}
		if n > 0 {
			broken = append(broken, fmt.Errorf("%w: %d %s", errViolated, n, law.broken))
		}
	}
	var ticks, runs int
	const count = "SELECT COALESCE(SUM(ticks), 0), COUNT(task_id) FROM delay_task_schedule_run"
	if err := s.world.Admin.QueryRowContext(ctx, count).Scan(&ticks, &runs); err != nil {
		return err
	}
	s.say("%d ticks of schedules were decided, %d ran", ticks, runs)
	return errors.Join(broken...)
}
