package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/http"
	"slices"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/wire"
)

// saveOnce serves a save under its idempotency key. It stores the id of the task before it saves the task. So a
// repetition, at the same moment or after a crash, saves under the same id, and the task is stored once.
func (a *API) saveOnce(ctx context.Context, in *saveInput, item delaytask.Item) (*savedOutput, error) {
	// A wrong request must not take the key: corrected, it is another request.
	if err := a.operator.CheckSave(by(ctx), item); err != nil {
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
		return nil, wire.NewProblem(http.StatusUnprocessableEntity, wire.CodeIdempotencyMismatch,
			"this Idempotency-Key was used for another request within the last 24 h; take a new one for a new task")
	}
	if known.Saved {
		return a.again(ctx, in, item, known)
	}
	saved, err := a.saveUnder(ctx, in, item, known.TaskID)
	out, err := a.saved(ctx, item, saved, err)
	if err != nil {
		return nil, err
	}
	id = saved.ID
	known.TaskID, known.Duplicate, known.Rescheduled = id, out.Status == http.StatusOK, out.Body.Rescheduled
	if err := a.requests.SaveRequest(ctx, known); err != nil {
		// A repetition saves under the same id, so the task is stored once.
		a.log.Warn("an idempotency key could not be marked as served", "task", id, "err", err)
	}
	return out, nil
}

// saveUnder saves the task under the id. When another row has an id that was drawn for this request, it takes the
// alternate id.
func (a *API) saveUnder(
	ctx context.Context, in *saveInput, item delaytask.Item, id int64,
) (saved core.Saved, err error) {
	options := item.Options
	for _, id := range []int64{id, id ^ alternateBit} {
		item.Options = append(slices.Clone(options), delaytask.WithID(id))
		saved, err = a.operator.Save(ctx, by(ctx), item)
		if in.Body.ID != 0 || !errors.Is(err, delaytask.ErrConflict) {
			return saved, err
		}
		if own, err := a.isOwn(ctx, in, id); own || err != nil {
			return core.Saved{ID: id}, err
		}
	}
	return saved, err
}

// alternateBit is the highest of an id's sequence number. The alternate id is far from those that plain INSERTs get
// next. A repetition of the request, even after a crash, gets the same one.
const alternateBit = 1 << 11

// isOwn reports whether a row that differs from a request is its task, changed since. A row of another tag or key, or
// one that was never changed, is not: a plain INSERT gets the number after the last id, and that may have been drawn
// meanwhile.
func (a *API) isOwn(ctx context.Context, in *saveInput, id int64) (bool, error) {
	task, err := a.scheduler.Get(ctx, delaytask.ID(id))
	if err != nil {
		return false, err
	}
	return task.Tag == in.Body.Tag && task.Key == in.Body.Key && task.App() == in.Body.App && task.Version > 0, nil
}

// again answers as the first time, whatever has become of the task since. The request is stored for longer than some
// tasks.
func (a *API) again(
	ctx context.Context, in *saveInput, item delaytask.Item, known row.Request,
) (*savedOutput, error) {
	out := savedAs(known.Duplicate && !known.Rescheduled, known.Rescheduled)
	task, err := a.scheduler.Get(ctx, delaytask.ID(known.TaskID))
	switch {
	case errors.Is(err, delaytask.ErrNotFound):
		out.Body.Gone = true
		out.Body.Task = wire.Task{ID: wire.ID(known.TaskID), Tag: in.Body.Tag, Key: in.Body.Key, App: in.Body.App}
	case err != nil:
		return nil, a.problem(err)
	default:
		a.show(ctx, out, &task, item)
	}
	return out, nil
}
