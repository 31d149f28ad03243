package api

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// operation fills in what all operations share. Bodies are read and checked before the framework sees them.
func (a *API) operation(method, path, id, summary, description, group string) huma.Operation {
	return huma.Operation{
		Method: method, Path: path, OperationID: id, Summary: summary, Description: description, Tags: []string{group},
		SkipValidateBody: true, MaxBodyBytes: -1, BodyReadTimeout: -1, Middlewares: huma.Middlewares{a.timed},
	}
}

// The groups that the document shows operations in.
const (
	groupTasks     = "tasks"
	groupPull      = "pull"
	groupOperate   = "operate"
	groupPush      = "push"
	groupSchedules = "schedules"
)

// groups are in the order of the page.
var groups = []*huma.Tag{
	{Name: groupTasks, Description: "Save tasks, look at them, change them, one or all that match."},
	{Name: groupPull, Description: "Take due tasks, and end them by their lease tokens."},
	{Name: groupPush, Description: "Register addresses that the service calls with due tasks."},
	{Name: groupSchedules, Description: "Run tasks again and again, and see what became of each tick."},
	{Name: groupOperate, Description: "See how all stands, and pause and resume tags."},
}

// requestWait is how long a request waits for the database. Most clients give up after 30 s, and shall get an answer
// before. Pops have a wait of their own.
const requestWait = 15 * time.Second

// timed ends the context of an operation that takes longer.
func (a *API) timed(ctx huma.Context, next func(huma.Context)) {
	limited, cancel := context.WithTimeout(ctx.Context(), a.requestWait)
	defer cancel()
	next(huma.WithContext(ctx, limited))
}
