package api

import (
	"cmp"
	"context"
	"fmt"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/access"
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

type schedulePageOutput struct{ Body wire.SchedulePage }

const (
	schedulesListed     = 100
	mostSchedulesListed = 1000
)

func (a *API) listScheduleOperation() {
	pages := a.operation(http.MethodGet, schedulesPath, "listSchedules", "List schedules",
		"Page by page, by name: those of tags that the token may read. A page ends at 16 MiB of bodies, but has at "+
			"least one schedule.", groupSchedules)
	pages.Middlewares = append(pages.Middlewares, a.paged)
	huma.Register(a.spec, pages, a.listSchedules)
}

func (a *API) listSchedules(ctx context.Context, in *scheduleListInput) (*schedulePageOutput, error) {
	if err := allow(ctx, access.Read, ""); err != nil {
		return nil, a.problem(err)
	}
	show, err := a.shower(ctx, in.RawInput, "")
	if err != nil {
		return nil, err
	}
	if in.Limit < 0 {
		return nil, a.problem(fmt.Errorf("%w: limit: want 1 to %d", delaytask.ErrInvalidOption, mostSchedulesListed))
	}
	limit := min(cmp.Or(in.Limit, schedulesListed), mostSchedulesListed)
	room := pageRoomOf(ctx)
	if in.Bodies {
		room.room = a.pages
	}
	if err := room.enter(ctx, a.roomWait); err != nil {
		return nil, err
	}
	out := &schedulePageOutput{wire.SchedulePage{Schedules: []wire.Schedule{}}}
	var held int64
	filter := delaytask.ScheduleFilter{
		Prefix: in.Prefix, Owner: in.Owner, AfterName: in.After, Limit: max(limit, schedulesListed),
		NoBodies: !in.Bodies, // so many may be of other tags
	}
	if in.Bodies { // all of a read is in memory
		filter.Limit = min(limit, max(1, pageBytes/max(1, a.bodyLimit)))
	}
	for {
		page, err := a.scheduler.ListSchedules(ctx, filter)
		if err != nil {
			return nil, a.problem(err)
		}
		for i := range page.Schedules {
			s := &page.Schedules[i]
			if !access.From(ctx).May(access.Read, s.Tag) {
				continue
			}
			n := len(out.Body.Schedules)
			if n == limit || n > 0 && held+int64(len(s.Body)) > pageBytes {
				out.Body.Next = out.Body.Schedules[n-1].Name
				room.keep(held)
				return out, nil
			}
			held += int64(len(s.Body))
			out.Body.Schedules = append(out.Body.Schedules, show.schedule(s))
		}
		if filter.AfterName = page.Next; page.Next == "" {
			room.keep(held)
			return out, nil
		}
	}
}
