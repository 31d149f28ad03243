package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/operate/bulk"
	"github.com/delaytask/delaytask/internal/wire"
)

const bulkPath = "/v1/bulk"

type bulkInput struct {
	IdempotencyKey string `header:"Idempotency-Key" hidden:"true"`
	Body           wire.Bulk
}

// bulkOutput has a [wire.BulkCount] or a [wire.BulkRun].
type bulkOutput struct {
	Status   int
	Location string `header:"Location"`
	Body     any
}

type BulkRunInput struct {
	ID string `path:"id" doc:"Id of the run"`
}

func (a *API) bulkOperations() {
	change := a.operation(http.MethodPost, bulkPath, "changeTasks", "Cancel or retry all tasks that match",
		"In the background of this process, tag by tag. Answers 202 with the run, or 200 with a count for a dry run. "+
			"Tasks that are executing, or that change meanwhile, are left alone, and so is a failed task whose key "+
			"another one carries by now. To send it again with the same as_of is safe. The as_of of a dry run "+
			"changes what it has counted. A process makes four such changes at a time. It needs the verb "+
			"change.", groupTasks)
	change.DefaultStatus = http.StatusAccepted
	huma.Register(a.spec, change, a.changeTasks)
	huma.Register(a.spec, a.operation(http.MethodGet, bulkPath, "listBulkChanges",
		"List the bulk changes of all processes",
		"The newest 100 of tags that the token may read or change, also those by the dashboard and the command. "+
			"One that is not in the audit log its process alone lists, and says process_only. Outcomes: stopped by a "+
			"caller, or with its process; what was changed stays so. lost: its process was not seen for 30 s. "+
			"unknown: its process does not tell, as one of an older version.", groupTasks),
		a.listBulk)
	huma.Register(a.spec, a.operation(http.MethodGet, bulkPath+"/{id}", "getBulkChange",
		"Tell how far a bulk change is",
		"Every process with the same database knows, about a second later. What is not in the audit log its process "+
			"alone knows.", groupTasks), a.getBulk)
	stop := a.operation(http.MethodPost, bulkPath+"/{id}/stop", "stopBulkChange", "Stop a bulk change",
		"It ends after the batch that it is at; one of another process learns of it within about a second. What it "+
			"has changed stays so. One that has ended stays as it is. It needs the verb change.", groupTasks)
	stop.DefaultStatus = http.StatusNoContent
	huma.Register(a.spec, stop, a.stopBulk)
}

func (a *API) changeTasks(ctx context.Context, in *bulkInput) (*bulkOutput, error) {
	if in.IdempotencyKey != "" {
		return nil, wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidHeader,
			"a bulk change takes no Idempotency-Key: send the same as_of again, and nothing is changed twice")
	}
	filter, err := bulkFilterOf(&in.Body)
	if err != nil {
		return nil, a.problem(err)
	}
	change, err := a.operator.Bulk(by(ctx), in.Body.Action, filter)
	if err != nil {
		return nil, a.problem(err)
	}
	asOf, err := a.asOf(ctx, in.Body.AsOf)
	if err != nil {
		return nil, a.problem(err)
	}
	if in.Body.DryRun {
		found, err := change.Count(ctx, delaytask.Bulk{AsOf: asOf})
		if err != nil {
			return nil, a.problem(err)
		}
		count := wire.BulkCount{Tasks: found.Tasks, Capped: found.Capped, AsOf: wire.Time(asOf)}
		return &bulkOutput{Status: http.StatusOK, Body: count}, nil
	}
	run, err := change.Start(ctx, bulk.About{AsOf: asOf})
	if err != nil {
		return nil, a.problem(err)
	}
	return &bulkOutput{http.StatusAccepted, bulkPath + "/" + run.ID, a.view(ctx, RawInput{}).BulkRun(&run)}, nil
}

// asOf returns the moment that bounds a bulk change. The given one may be nil.
func (a *API) asOf(ctx context.Context, given *wire.Moment) (time.Time, error) {
	switch {
	case given == nil:
		return a.operator.AsOf(ctx, time.Time{})
	case given.Std().IsZero():
		return time.Time{}, fmt.Errorf("%w: as_of is the year 1", delaytask.ErrInvalidTime)
	default:
		return a.operator.AsOf(ctx, given.Std())
	}
}

// bulkFilterOf reads the filter. It refuses one that selects everything when the request does not say so.
func bulkFilterOf(b *wire.Bulk) (f delaytask.Filter, err error) {
	switch empty := b.Filter == (wire.BulkFilter{}); {
	case empty && !b.All:
		return f, fmt.Errorf("%w: the filter is empty: name a tag or another field, or send all: true to %.10s all "+
			"tasks", delaytask.ErrInvalidOption, b.Action)
	case !empty && b.All:
		return f, fmt.Errorf("%w: all and a filter exclude each other: send one of them", delaytask.ErrInvalidOption)
	}
	if err := checkApp(string(b.Filter.App)); err != nil {
		return f, err
	}
	return b.Filter.To()
}

func (a *API) listBulk(ctx context.Context, _ *struct{}) (*output[wire.BulkList], error) {
	view := a.view(ctx, RawInput{})
	runs, err := view.Runs(ctx)
	if err != nil {
		return nil, a.problem(err)
	}
	out := &output[wire.BulkList]{wire.BulkList{Runs: make([]wire.BulkRun, len(runs))}}
	for i := range runs {
		out.Body.Runs[i] = view.BulkRun(&runs[i])
	}
	return out, nil
}

func (a *API) getBulk(ctx context.Context, in *BulkRunInput) (*output[wire.BulkRun], error) {
	view := a.view(ctx, RawInput{})
	run, err := view.Run(ctx, in.ID)
	return outputOf(a, view.BulkRun(&run), err)
}

func (a *API) stopBulk(ctx context.Context, in *BulkRunInput) (*struct{}, error) {
	_, err := a.operator.StopRun(ctx, by(ctx), in.ID)
	return nil, a.problem(err)
}
