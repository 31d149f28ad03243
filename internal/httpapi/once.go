package httpapi

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/access"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/seam"
	"github.com/delaytask/delaytask/internal/wire"
)

// Requests remembers which request was served under which idempotency key.
type Requests interface {
	// ReserveRequest stores the request, or returns the one that is stored under its hash, and false.
	ReserveRequest(ctx context.Context, r row.Request) (row.Request, bool, error)
	// SaveRequest notes that the task of a request is stored.
	SaveRequest(ctx context.Context, hash [32]byte, taskID int64, duplicate bool) error
}

// saveOnce serves a save under its idempotency key. The id of the task is remembered before the task is saved: whoever repeats the
// request, at the same moment or after a crash, saves under the same id, and that stores it once.
func (a *API) saveOnce(ctx context.Context, in *saveInput, item delaytask.Item) (*savedOutput, error) {
	// A request that is wrong must not take the key: mended, it is another request.
	if err := seam.CheckSave(a.scheduler, item); err != nil {
		return nil, a.problem(err)
	}
	id := int64(in.Body.ID)
	if id == 0 {
		id = delaytask.NewID()
	}
	known, _, err := a.requests.ReserveRequest(ctx, row.Request{
		Hash:    sha256.Sum256([]byte(access.From(ctx).Name() + "\x00" + in.IdempotencyKey)),
		Content: sha256.Sum256(in.RawBody),
		TaskID:  id,
	})
	if err != nil {
		return nil, a.problem(err)
	}
	if known.Content != sha256.Sum256(in.RawBody) {
		return nil, problemOf(http.StatusUnprocessableEntity, wire.CodeIdempotencyMismatch,
			"this Idempotency-Key was used for another request within the last 24 h; take a new one for a new task")
	}
	if known.Saved {
		return a.again(ctx, in, known)
	}
	item.Options = append(item.Options, delaytask.WithID(known.TaskID))
	id, err = a.scheduler.SaveDelayTask(ctx, item.Tag, item.Body, item.Delay, item.Options...)
	if in.Body.ID == 0 && errors.Is(err, delaytask.ErrConflict) {
		id, err = known.TaskID, nil // the id was drawn for this request alone: its task is stored, and was changed since
	}
	out, err := a.saved(ctx, id, err)
	if err != nil {
		return nil, err
	}
	if err := a.requests.SaveRequest(ctx, known.Hash, id, out.Body.Duplicate); err != nil {
		// A repetition saves under the same id then, which is stored once.
		a.log.Warn("an idempotency key could not be marked as served", "task", id, "err", err)
	}
	return out, nil
}

// again answers as the first time, whatever has become of the task since. The request is remembered for longer than some tasks are
// kept.
func (a *API) again(ctx context.Context, in *saveInput, known row.Request) (*savedOutput, error) {
	out := &savedOutput{Status: http.StatusCreated, Body: wire.Saved{Duplicate: known.Duplicate}}
	if known.Duplicate {
		out.Status = http.StatusOK
	}
	task, err := a.scheduler.Get(ctx, delaytask.ID(known.TaskID))
	switch {
	case errors.Is(err, delaytask.ErrNotFound):
		out.Body.Gone = true
		out.Body.Task = wire.Task{ID: wire.ID(known.TaskID), Tag: in.Body.Tag, Key: in.Body.Key}
	case err != nil:
		return nil, a.problem(err)
	default:
		out.Body.Task = shownTo(ctx, &task, known.Duplicate)
	}
	return out, nil
}
