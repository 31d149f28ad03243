package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/server/access"
	"github.com/delaytask/delaytask/internal/server/view"
	"github.com/delaytask/delaytask/internal/wire"
)

type listInput struct {
	Tag       string `query:"tag" doc:"Only tasks of this tag"`
	Status    string `query:"status" doc:"Only tasks in it: pending, executing, completed, failed or cancelled"`
	Key       string `query:"key" doc:"Only tasks with this key, finished ones too"`
	App       string `query:"app" doc:"With key: the application that the key belongs to; without it, tasks of no application"`
	DueBefore string `query:"due_before" doc:"Due earlier; of finished tasks that is when they finished"`
	Cursor    string `query:"cursor" doc:"next of the page before; the other parameters must be the same"`
	Limit     int    `query:"limit" doc:"Tasks in a page; default 100, at most 1,000, with bodies 100"`
	Bodies    bool   `query:"bodies" doc:"With the bodies"`
}

type listOutput struct{ Body wire.Page }

func (a *API) listOperation() {
	pages := a.operation(http.MethodGet, "/v1/tasks", "listTasks", "List tasks",
		"Page by page, in the order of their ids. A page ends at 16 MiB of bodies and errors, but has at least one "+
			"task.", groupTasks)
	pages.Middlewares = append(pages.Middlewares, a.paged)
	huma.Register(a.spec, pages, a.list)
}

func (a *API) list(ctx context.Context, in *listInput) (*listOutput, error) {
	if err := allow(ctx, access.Read, in.Tag); err != nil {
		return nil, a.problem(err)
	}
	if in.Tag == "" && !access.From(ctx).AnyTag(access.Read) {
		return nil, problemOf(http.StatusForbidden, wire.CodeForbidden,
			"this token may read some tags only: name one with tag=")
	}
	if err := checkApp(in.App); err != nil {
		return nil, err
	}
	filter := delaytask.Filter{
		Tag: in.Tag, Status: delaytask.Status(in.Status), Key: in.Key, App: in.App, Limit: in.Limit, Bodies: in.Bodies,
	}
	before, err := optionalTime("due_before", in.DueBefore)
	if err != nil {
		return nil, a.problem(err)
	}
	filter.DueBefore = before.Std()
	if filter.After, err = in.after(); err != nil {
		return nil, a.problem(err)
	}
	room := pageRoomOf(ctx)
	if in.Bodies {
		room.room = a.pages
	}
	if err := room.enter(ctx, a.roomWait); err != nil {
		return nil, err
	}
	page, err := a.scheduler.List(ctx, filter)
	if err != nil {
		return nil, a.problem(err)
	}
	var needed int64
	for i := range page.Tasks {
		needed += int64(len(page.Tasks[i].Body) + len(page.Tasks[i].ErrorStack))
	}
	room.keep(needed)
	out := &listOutput{wire.Page{Tasks: view.Tasks(page.Tasks)}}
	if page.Next != 0 {
		out.Body.Next = in.from(page.Next).String()
	}
	return out, nil
}

// from returns the position in the list that is asked for.
func (in *listInput) from(after int64) wire.Cursor {
	return wire.Cursor{After: after, Tag: in.Tag, Status: in.Status, Key: in.Key, App: in.App, DueBefore: in.DueBefore}
}

func (in *listInput) after() (int64, error) {
	cursor := in.from(0)
	if in.Cursor != "" && !cursor.Parse(in.Cursor) {
		return 0, badCursor()
	}
	return cursor.After, nil
}

func badCursor() error {
	return problemOf(http.StatusBadRequest, wire.CodeInvalidCursor,
		"the cursor is not one of this list: take next from the page before, with the same parameters, or begin "+
			"without one")
}
