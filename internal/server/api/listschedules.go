package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

type scheduleListInput struct {
	Prefix string `query:"prefix" doc:"Only schedules whose names begin so"`
	Owner  string `query:"owner" doc:"Only schedules that this set declares"`
	After  string `query:"after" doc:"next of the page before"`
	Limit  int    `query:"limit" doc:"Schedules in a page; default 100, at most 1,000"`
	Bodies bool   `query:"bodies" doc:"With the bodies"`
	RawInput
}

const (
	schedulesListed     = 100
	mostSchedulesListed = 1000
)

func (a *API) listScheduleOperation() {
	pages := a.operation(http.MethodGet, schedulesPath, "listSchedules", "List schedules",
		"Page by page, by name: schedules of tags that the token may read. A page ends at 16 MiB of bodies, but has "+
			"at least one schedule.", groupSchedules)
	pages.Middlewares = append(pages.Middlewares, a.paged)
	huma.Register(a.spec, pages, a.listSchedules)
}

func (a *API) listSchedules(ctx context.Context, in *scheduleListInput) (*output[wire.SchedulePage], error) {
	view := a.view(ctx, in.RawInput)
	if err := view.MayListSchedules(); err != nil {
		return nil, a.problem(err)
	}
	if in.Limit < 0 {
		return nil, a.problem(fmt.Errorf("%w: limit: want 1 to %d", delaytask.ErrInvalidOption, mostSchedulesListed))
	}
	limit := min(cmp.Or(in.Limit, schedulesListed), mostSchedulesListed)
	room := pageRoomOf(ctx)
	if err := room.enter(ctx, in.Bodies); err != nil {
		return nil, err
	}
	atOnce := max(limit, schedulesListed) // so many may be of other tags
	if in.Bodies {                        // all of a read is in memory
		atOnce = min(limit, max(1, pageBytes/max(1, a.bodyLimit)))
	}
	page, next, err := view.Schedules(ctx, delaytask.ScheduleFilter{
		Prefix: in.Prefix, Owner: in.Owner, AfterName: in.After, Limit: limit, NoBodies: !in.Bodies,
	}, atOnce)
	if err != nil {
		return nil, a.problem(err)
	}
	out := &output[wire.SchedulePage]{wire.SchedulePage{Schedules: make([]wire.Schedule, len(page)), Next: next}}
	var held int64
	for i := range page {
		held += int64(len(page[i].Body))
		out.Body.Schedules[i] = scheduleOf(&page[i])
	}
	room.keep(held)
	return out, nil
}
