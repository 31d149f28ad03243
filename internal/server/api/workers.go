package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/server/access"
	"github.com/delaytask/delaytask/internal/server/push"
	"github.com/delaytask/delaytask/internal/wire"
)

// Workers are the addresses that are called back with tasks. Its errors are *wire.Problem where the caller is at fault.
type Workers interface {
	Register(ctx context.Context, r *wire.Register) (wire.Worker, error)
	List(ctx context.Context) ([]wire.Worker, error)
	Known(ctx context.Context, app, address string) (wire.Worker, bool, error) // expired or not
	Get(ctx context.Context, id int64) (wire.Worker, error)
	Heartbeat(ctx context.Context, id int64) (wire.Worker, error)
	Remove(ctx context.Context, id int64) error
	// Explain says that nobody serves the application of a task, or nothing: the Reason is "" then.
	Explain(ctx context.Context, task *delaytask.TaskRow) (delaytask.Explanation, error)
}

type registerInput struct{ Body wire.Register }

type workerOutput struct{ Body wire.Worker }

type workersOutput struct{ Body wire.WorkerList }

type workerInput struct {
	ID string `path:"id" doc:"Id of the worker"`
}

func (a *API) workerOperations() {
	register := a.operation(http.MethodPost, "/v1/workers", "registerWorker", "Register an address that is called with tasks",
		"Registering the same app and address again replaces it; a secret and a ttl that are left out stay. "+
			"Without heartbeats it is not called after its ttl, and forgotten an hour later.", groupPush)
	register.DefaultStatus = http.StatusCreated
	huma.Register(a.spec, register, a.register)
	huma.Register(a.spec, a.operation(http.MethodGet, "/v1/workers", "listWorkers", "List the addresses that are called", "",
		groupPush), a.listWorkers)
	huma.Register(a.spec, a.operation(http.MethodGet, "/v1/workers/{id}", "getWorker", "Show one of them", "", groupPush),
		func(ctx context.Context, in *workerInput) (*workerOutput, error) {
			return a.onWorker(ctx, in, func(_ context.Context, w wire.Worker) (wire.Worker, error) { return w, nil })
		})
	huma.Register(a.spec, a.operation(http.MethodPost, "/v1/workers/{id}/heartbeat", "heartbeat", "Say that a worker is alive",
		"It stays registered for its ttl from now.", groupPush),
		func(ctx context.Context, in *workerInput) (*workerOutput, error) {
			return a.onWorker(ctx, in, func(ctx context.Context, w wire.Worker) (wire.Worker, error) {
				return a.workers.Heartbeat(ctx, int64(w.ID))
			})
		})
	remove := a.operation(http.MethodDelete, "/v1/workers/{id}", "removeWorker", "Call an address no more", "", groupPush)
	remove.DefaultStatus = http.StatusNoContent
	huma.Register(a.spec, remove, func(ctx context.Context, in *workerInput) (*struct{}, error) {
		_, err := a.onWorker(ctx, in, func(ctx context.Context, w wire.Worker) (wire.Worker, error) {
			return w, a.workers.Remove(ctx, int64(w.ID))
		})
		return nil, err
	})
}

func (a *API) register(ctx context.Context, in *registerInput) (*workerOutput, error) {
	for _, tag := range append([]string{""}, in.Body.Tags...) {
		if err := allow(ctx, access.Register, tag); err != nil {
			return nil, a.problem(err)
		}
	}
	// Also one that has expired: its secret would sign what is registered now.
	before, there, err := a.workers.Known(ctx, in.Body.App, in.Body.Address)
	if err != nil {
		return nil, a.problem(err)
	}
	if there && !mayServe(ctx, before) {
		return nil, problemOf(http.StatusForbidden, wire.CodeForbidden, "this app and address are registered for tags that this "+
			"token may not register; remove it with a token that may, or wait until it is forgotten, an hour after its ttl")
	}
	worker, err := a.workers.Register(ctx, &in.Body)
	if err != nil {
		return nil, a.problem(err)
	}
	return &workerOutput{worker}, nil
}

func (a *API) listWorkers(ctx context.Context, _ *struct{}) (*workersOutput, error) {
	if err := allow(ctx, access.Register, ""); err != nil {
		return nil, a.problem(err)
	}
	all, err := a.workers.List(ctx)
	if err != nil {
		return nil, a.problem(err)
	}
	out := &workersOutput{wire.WorkerList{Workers: []wire.Worker{}}}
	for _, w := range all {
		if mayServe(ctx, w) {
			out.Body.Workers = append(out.Body.Workers, w)
		}
	}
	return out, nil
}

// onWorker finds the worker that is meant, if the caller may register its tags.
func (a *API) onWorker(
	ctx context.Context, in *workerInput, do func(context.Context, wire.Worker) (wire.Worker, error),
) (*workerOutput, error) {
	id, err := wire.ParseID(in.ID)
	if err != nil {
		return nil, invalidID(err)
	}
	if err := allow(ctx, access.Register, ""); err != nil {
		return nil, a.problem(err)
	}
	worker, err := a.workers.Get(ctx, int64(id))
	if err != nil {
		return nil, a.problem(err)
	}
	if !mayServe(ctx, worker) {
		return nil, push.NotFound()
	}
	if worker, err = do(ctx, worker); err != nil {
		return nil, a.problem(err)
	}
	return &workerOutput{worker}, nil
}

func mayServe(ctx context.Context, w wire.Worker) bool {
	for _, tag := range w.Tags {
		if !access.From(ctx).May(access.Register, tag) {
			return false
		}
	}
	return true
}
