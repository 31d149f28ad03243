package operate

import (
	"context"
	"fmt"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/eyes/listing"
	"github.com/delaytask/delaytask/internal/eyes/sentence"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/operate/redact"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/report"
)

// Task is a task as a caller sees it: without its body where that takes a right that the caller lacks.
type Task struct {
	delaytask.TaskRow
	Bytes    int  // of its body, if that was read
	Redacted bool // a mask stands for a secret in it
}

// Task returns a task. It takes the verb read.
func (v *View) Task(ctx context.Context, ref delaytask.Ref) (Task, error) {
	task, err := v.find(ctx, ref)
	if err != nil {
		return Task{}, err
	}
	return v.Seen(ref, &task)
}

// find reads a task that the caller may read.
func (v *View) find(ctx context.Context, ref delaytask.Ref) (task delaytask.TaskRow, err error) {
	_, tag, _, err := ref.Parts()
	if err == nil {
		err = v.Allow(access.Read, tag)
	}
	if err == nil {
		task, err = v.o.Core.Get(ctx, ref)
	}
	if err == nil {
		err = v.mayKnow(ref, task.Tag)
	}
	return task, err
}

func (v *View) mayKnow(ref delaytask.Ref, tag string) error {
	if v.May(access.Read, tag) {
		return nil
	}
	return taskTarget(ref, 0, tag).hidden
}

// Seen is Task for one that was read.
func (v *View) Seen(ref delaytask.Ref, stored *delaytask.TaskRow) (Task, error) {
	if err := v.mayKnow(ref, stored.Tag); err != nil {
		return Task{}, err
	}
	if err := v.reveals(stored.Tag); err != nil {
		return Task{}, err
	}
	return v.task(stored), nil
}

func (v *View) task(stored *delaytask.TaskRow) Task {
	t, m := *stored, v.masking(stored.Tag)
	if !v.May(access.Bodies, t.Tag) {
		t.Body = nil
	}
	if m.masks == nil {
		return Task{TaskRow: t, Bytes: len(stored.Body)}
	}
	t.Body, t.Headers = m.body(t.Body), m.headers(t.Headers)
	t.ErrorStack, t.Broken = m.text(t.ErrorStack), m.text(t.Broken)
	t.Errors = slices.Clone(t.Errors)
	for i := range t.Errors {
		t.Errors[i].Error = m.text(t.Errors[i].Error)
	}
	return Task{TaskRow: t, Bytes: len(stored.Body), Redacted: m.masked}
}

// Body returns the body of a task, and whether a secret in it is masked. It takes the verbs read and bodies. It returns
// [delaytask.ErrBroken] for a row that cannot be read.
func (v *View) Body(ctx context.Context, ref delaytask.Ref) (id int64, body []byte, redacted bool, err error) {
	task, err := v.find(ctx, ref)
	m := v.masking(task.Tag)
	switch {
	case err != nil:
		return 0, nil, false, err
	case !v.May(access.Bodies, task.Tag):
		return 0, nil, false, errBodies
	case task.Broken != "":
		return 0, nil, false, fmt.Errorf("%w: %s", delaytask.ErrBroken, m.text(task.Broken))
	}
	body = m.body(task.Body)
	return task.ID, body, m.masked, v.reveals(task.Tag)
}

// Explanation says why a task has not run.
type Explanation struct {
	Task      Task
	Reason    report.Reason
	Text      string
	Sentences sentence.Text // of the Text; none where Config.Explain has explained it
}

// Explain says why a task has not run. It takes the verb read.
func (v *View) Explain(ctx context.Context, ref delaytask.Ref) (e Explanation, err error) {
	found, err := v.find(ctx, ref)
	if err != nil {
		return e, err
	}
	if err := v.reveals(found.Tag); err != nil {
		return e, err
	}
	var why report.Explanation
	if v.o.Explain != nil {
		why, err = v.o.Explain(ctx, &found)
	}
	if err == nil && why.Reason == "" {
		why, e.Sentences, err = v.o.Core.Explain(ctx, delaytask.ID(found.ID))
	}
	if err != nil {
		return e, err
	}
	why.Task.Body = found.Body
	e.Task, e.Reason, e.Text = v.task(&why.Task), why.Reason, v.Text(found.Tag, why.Text)
	return e, nil
}

// Page is a part of a list.
type Page struct {
	Tasks   []Task
	Next    string
	Stopped bool
}

// MayList returns an error for a caller that may not list tasks of the tag, or of all tags when it is "".
func (v *View) MayList(tag string) error {
	if err := v.Allow(access.Read, tag); err != nil {
		return err
	}
	if tag == "" && !v.AnyTag(access.Read) {
		return errRead
	}
	return v.reveals(tag)
}

// List returns the tasks that match. It takes the verb read for the tag of the filter, or for all tags.
func (v *View) List(ctx context.Context, f delaytask.Filter) (page Page, err error) {
	if err := v.MayList(f.Tag); err != nil {
		return page, err
	}
	found, err := v.o.Core.List(ctx, f)
	if err != nil {
		return page, err
	}
	page = Page{Tasks: make([]Task, len(found.Tasks)), Next: found.Next, Stopped: found.Stopped}
	for i := range found.Tasks {
		page.Tasks[i] = v.task(&found.Tasks[i])
	}
	return page, nil
}

// Failures groups failed tasks. It takes the same right as List.
func (v *View) Failures(ctx context.Context, tag string) (f report.Failures, err error) {
	if err := v.MayList(tag); err != nil {
		return f, err
	}
	if f, err = v.o.Core.Failures(ctx, tag); err != nil {
		return f, err
	}
	for i := range f.Groups {
		g := &f.Groups[i]
		if m := v.masking(g.Tag); m.masks != nil {
			of := row.Failure{Tag: g.Tag, Error: g.Example}
			g.Error = listing.Masked(of, m.masks.Text)
			g.Example = m.masks.Beginning(g.Tag, g.Example, row.FailureSize-len(redact.Cut))
		}
	}
	return f, nil
}
