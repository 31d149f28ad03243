package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

// listInput describes the parameters of a filter; [listInput.Resolve] reads them.
type listInput struct {
	Tag       string `query:"tag" doc:"Only tasks of this tag"`
	Status    string `query:"status" doc:"Only tasks in it: pending, executing, completed, failed or cancelled"`
	Key       string `query:"key" doc:"With tag: the unfinished task with this key, then finished ones, newest first"`
	App       string `query:"app" doc:"With key: its application; without it, tasks of no application"`
	DueFrom   string `query:"due_from" doc:"Due then or later; of finished tasks that is when they finished"`
	DueBefore string `query:"due_before" doc:"Due earlier; likewise"`
	LateBy    string `query:"late_by" doc:"Began later than this, or has not begun and is that late now"`
	Error     string `query:"error" doc:"The last error contains it, byte by byte"`
	Group     string `query:"group" doc:"Only failed tasks of this group, see /v1/failures"`
	Order     string `query:"order" doc:"due, -due (latest first) or -id (newest saves first); due needs status or tag"`
	Cursor    string `query:"cursor" doc:"next of the page before; the other parameters must be the same"`
	Limit     int    `query:"limit" doc:"Tasks in a page; default 100, at most 1,000, with bodies 100"`
	Bodies    bool   `query:"bodies" doc:"With the bodies"`
	RawInput

	filter delaytask.Filter
	err    error
}

func (in *listInput) Resolve(ctx huma.Context) []error {
	u := ctx.URL()
	in.filter, in.err = wire.ParseFilter(u.Query())
	in.filter.Limit, in.filter.Bodies = in.Limit, in.Bodies
	return nil
}

func (a *API) listOperation() {
	pages := a.operation(http.MethodGet, "/v1/tasks", "listTasks", "List tasks",
		"Page by page, in an order that an index has. By default unfinished tasks come by due, finished tasks and "+
			"tasks of a tag by -due, all tasks by -id. A page ends at 16 MiB of bodies and errors, but has at least "+
			"one task. It also ends, and says stopped, after it has looked at 10,000 tasks, or for 0.1 s.", groupTasks)
	pages.Middlewares = append(pages.Middlewares, a.paged)
	huma.Register(a.spec, pages, a.list)
	huma.Register(a.spec, a.operation(http.MethodGet, "/v1/failures", "listFailures",
		"Group failed tasks by their errors",
		"It looks at the newest 1,000. Errors of a group are the same but for numbers, addresses and quoted texts.",
		groupTasks), a.failures)
}

type failuresInput struct {
	Tag string `query:"tag" doc:"Only tasks of this tag"`
	RawInput
}

func (a *API) failures(ctx context.Context, in *failuresInput) (*output[wire.Failures], error) {
	found, err := a.view(ctx, in.RawInput).Failures(ctx, in.Tag)
	return outputOf(a, wire.FromFailures(&found), err)
}

func (a *API) list(ctx context.Context, in *listInput) (*output[wire.Page], error) {
	view := a.view(ctx, in.RawInput)
	if err := view.MayList(in.Tag); err != nil {
		return nil, a.problem(err)
	}
	if err := checkApp(in.App); err != nil {
		return nil, err
	}
	if in.err != nil {
		return nil, a.problem(in.err)
	}
	room := pageRoomOf(ctx)
	if err := room.enter(ctx, in.Bodies); err != nil {
		return nil, err
	}
	page, err := view.List(ctx, in.filter)
	if err != nil {
		return nil, a.problem(err)
	}
	out := &output[wire.Page]{wire.Page{
		Tasks: make([]wire.Task, len(page.Tasks)), Next: page.Next, Stopped: page.Stopped,
	}}
	var needed int64
	for i := range page.Tasks {
		needed += int64(len(page.Tasks[i].Body) + len(page.Tasks[i].ErrorStack))
		out.Body.Tasks[i] = taskOf(&page.Tasks[i])
	}
	room.keep(needed)
	return out, nil
}
