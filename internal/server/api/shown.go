package api

import (
	"context"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/server/access"
	"github.com/delaytask/delaytask/internal/server/view"
	"github.com/delaytask/delaytask/internal/wire"
)

// shownTask is what the caller sees of a task that it may read. Without Bodies its body is left out.
func shownTask(ctx context.Context, task *delaytask.TaskRow) wire.Task {
	shown := view.Task(task)
	if !access.From(ctx).May(access.Bodies, task.Tag) {
		shown.Body = wire.Body{}
	}
	return shown
}

func shownTasks(ctx context.Context, tasks []delaytask.TaskRow) []wire.Task {
	shown := make([]wire.Task, len(tasks))
	for i := range tasks {
		shown[i] = shownTask(ctx, &tasks[i])
	}
	return shown
}

// shownSchedule is shownTask for a schedule.
func shownSchedule(ctx context.Context, s *delaytask.Schedule) wire.Schedule {
	shown := view.Schedule(s)
	if !access.From(ctx).May(access.Bodies, s.Tag) {
		shown.Body = wire.Body{}
	}
	return shown
}
