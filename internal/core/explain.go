package core

import (
	"context"
	"fmt"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/cluster"
	"github.com/delaytask/delaytask/internal/eyes/explain"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// Explain also returns the sentences of the Text, to word it in another language.
func (c *Core) Explain(ctx context.Context, ref delaytask.Ref) (report.Explanation, sentence.Text, error) {
	task, err := c.Get(ctx, ref)
	if err != nil {
		return report.Explanation{}, nil, err
	}
	task.Body = nil
	reason, text, err := c.explain(ctx, &task)
	if err != nil {
		return report.Explanation{}, nil, fmt.Errorf("explain %v: %w", ref, err)
	}
	return report.Explanation{Task: task, Reason: reason, Text: text.English()}, text, nil
}

func (c *Core) explain(ctx context.Context, t *delaytask.TaskRow) (report.Reason, sentence.Text, error) {
	if t.Broken != "" {
		return report.ReasonBroken, sentence.Text{sentence.Of(sentence.TaskBroken, sentence.Quote(t.Broken))}, nil
	}
	if t.Status.Final() {
		reason, text := explain.Ended(t, c.quarantine)
		return reason, text, nil
	}
	now, err := c.clusterState(ctx)
	if err != nil {
		return "", nil, err
	}
	if t.Status == delaytask.Executing {
		executor, known := row.ParseExecutor(t.Executor)
		ahead := known && cluster.IsAhead(executor, row.At(t.Due), t.TTR, now.nodes, now.now)
		reason, text := explain.Executing(t, now.now.Std(), ahead)
		return reason, text, nil
	}
	locked, err := c.store.Locked(ctx, []int64{t.ID})
	refused := row.ClassOf(err) == row.ClassNotApplied
	if err != nil && !refused {
		return "", nil, err
	}
	reason, text := explain.Pending(t, explain.Around{
		Now: now.now.Std(), Paused: now.paused[t.Tag].Paused, Served: now.served[t.Tag],
		Locked: slices.Contains(locked, t.ID), TagLocked: slices.Contains(c.engine.LockedTags(), t.Tag),
	})
	if refused { // the rest was read
		text = append(text, sentence.Of(sentence.TaskLockUnknown))
	}
	return reason, text, nil
}
