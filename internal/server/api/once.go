package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bridge"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/server/access"
	"github.com/delaytask/delaytask/internal/wire"
)

// Requests remembers which request was served under which idempotency key.
type Requests interface {
	// ReserveRequest stores the request, or returns the one that is stored under its hash, and false.
	ReserveRequest(ctx context.Context, r row.Request) (row.Request, bool, error)
	// SaveRequest notes that the task of a request is stored.
	SaveRequest(ctx context.Context, hash [32]byte, taskID int64, duplicate bool) error
}

// saveOnce serves a save under its idempotency key. The id of the task is remembered before the task is saved: whoever
// repeats the request, at the same moment or after a crash, saves under the same id, and that stores it once.
func (a *API) saveOnce(ctx context.Context, in *saveInput, item delaytask.Item) (*savedOutput, error) {
	// A request that is wrong must not take the key: mended, it is another request.
	if err := bridge.CheckSave(a.scheduler, item); err != nil {
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
	id, err = a.saveUnder(ctx, in, item, known.TaskID)
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

// saveUnder saves the task under the id, or, when that was drawn for this request and a stranger has it, under its
// twin.
func (a *API) saveUnder(ctx context.Context, in *saveInput, item delaytask.Item, id int64) (saved int64, err error) {
	for _, id := range []int64{id, id ^ alternateBit} {
		options := append(slices.Clone(item.Options), delaytask.WithID(id))
		saved, err = a.scheduler.SaveDelayTask(ctx, item.Tag, item.Body, item.Delay, options...)
		if in.Body.ID != 0 || !errors.Is(err, delaytask.ErrConflict) {
			return saved, err
		}
		if own, err := a.isOwn(ctx, in, id); own || err != nil {
			return id, err
		}
	}
	return saved, err
}

// alternateBit is the highest of an id's sequence number. With it changed, an id is far from those that plain INSERTs
// get next, and whoever repeats the request, also after a crash, gets the same twin.
const alternateBit = 1 << 11

// isOwn reports whether a row that is not what a request wants is its task all the same, which was changed since. A row
// of another tag or key, or one that nobody has touched yet, is a stranger's: a plain INSERT gets the next number after
// the last id, and that may have been drawn meanwhile.
func (a *API) isOwn(ctx context.Context, in *saveInput, id int64) (bool, error) {
	task, err := a.scheduler.Get(ctx, delaytask.ID(id))
	if err != nil {
		return false, err
	}
	return task.Tag == in.Body.Tag && task.Key == in.Body.Key && task.App() == in.Body.App && task.Version > 0, nil
}

// again answers as the first time, whatever has become of the task since. The request is remembered for longer than
// some tasks are kept.
func (a *API) again(ctx context.Context, in *saveInput, known row.Request) (*savedOutput, error) {
	out := &savedOutput{Status: http.StatusCreated, Body: wire.Saved{Duplicate: known.Duplicate}}
	if known.Duplicate {
		out.Status = http.StatusOK
	}
	task, err := a.scheduler.Get(ctx, delaytask.ID(known.TaskID))
	switch {
	case errors.Is(err, delaytask.ErrNotFound):
		out.Body.Gone = true
		out.Body.Task = wire.Task{ID: wire.ID(known.TaskID), Tag: in.Body.Tag, Key: in.Body.Key, App: in.Body.App}
	case err != nil:
		return nil, a.problem(err)
	default:
		out.Body.Task = shownTo(ctx, &task, known.Duplicate)
	}
	return out, nil
}
