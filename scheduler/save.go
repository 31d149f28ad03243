package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/propagation"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/engine/control"
	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/request"
)

// SaveDelayTask stores a task of the tag that is due after the delay, and returns its id once it is committed. It need
// not be registered here: any process that serves the tag runs it.
//
// A body that is a []byte, a string or a json.RawMessage is stored as it is; nil is an empty body; anything else is
// marshalled to JSON. The delay is rounded up to a millisecond; 0 means now.
//
// It returns an error about the arguments (nothing is stored then); [delaytask.ErrDuplicate] together with the id of
// the unfinished task that carries the key; [delaytask.ErrOverloaded] when the database takes less than is offered; or
// [delaytask.ErrOutcomeUnknown] when ctx ended before the outcome was known: save again with the id that
// [delaytask.OutcomeUnknownError] holds, which is safe. [delaytask.WithOnConflict] says what else a save with a key
// does and returns. [delaytask.ErrContended] means that the key belonged to another task each time; save again.
func (s *Scheduler) SaveDelayTask(
	ctx context.Context, tag string, body any, delay time.Duration, opts ...delaytask.Option,
) (int64, error) {
	id, _, err := s.save(ctx, tag, body, delay, opts)
	return id, err
}

// save also returns what is known of the task without a read.
func (s *Scheduler) save(
	ctx context.Context, tag string, body any, delay time.Duration, opts []delaytask.Option,
) (id int64, saved control.Saved, err error) {
	if err := s.enter(ctx); err != nil {
		return 0, saved, err
	}
	ctx, span := s.tracing.send(ctx, tag)
	defer func() { endSend(span, id, err) }()
	save, err := s.newSave(s.tracing.carried(ctx), tag, body, delay, opts)
	if err != nil {
		return 0, saved, err
	}
	s.tracing.noteDelay(span, &save)
	return s.engine.Save(ctx, save)
}

// SaveDelayTaskTx is SaveDelayTask inside the caller's transaction, which must be one of the same database: the task
// exists if and only if the transaction commits. A task that it reschedules, see [delaytask.WithOnConflict], stays
// locked until then. Nothing is retried there. After an error other than one about the arguments,
// [delaytask.ErrDuplicate] or [delaytask.ErrNotPending] the transaction should be rolled back. It returns
// [delaytask.ErrNilTx] for a nil transaction, and [delaytask.ErrNoTransaction] for what commits each statement by
// itself, as a pool does.
//
// The Commit of database/sql takes no context: a readTimeout of the caller's pool bounds how long a server that hangs
// keeps the caller.
func (s *Scheduler) SaveDelayTaskTx(
	ctx context.Context, tx delaytask.Tx, tag string, body any, delay time.Duration, opts ...delaytask.Option,
) (id int64, err error) {
	if err := s.enterTx(ctx, tx); err != nil {
		return 0, err
	}
	ctx, span := s.tracing.send(ctx, tag)
	defer func() { endSend(span, id, err) }()
	save, err := s.newSave(s.tracing.carried(ctx), tag, body, delay, opts)
	if err != nil {
		return 0, err
	}
	s.tracing.noteDelay(span, &save)
	return s.engine.SaveTx(ctx, tx, save)
}

// Committed says that the transactions have ended in which the tasks were saved or changed. Those that are due start at
// once. Without it they are looked for, after 2 ms at first, and then ever less often. It does not wait. Ids of other
// tasks do no harm.
func (s *Scheduler) Committed(ids ...int64) { s.engine.Committed(ids) }

// SaveDelayTasks stores up to 10,000 tasks. All are checked first: a bad item is a [delaytask.BatchError] that names
// its index, and nothing is stored.
//
// Then they are stored in chunks, in the order of the items, as many as one statement takes: up to 500 tasks and 4 MiB,
// or one larger task. A chunk is stored as a whole or not at all; the results are in the order of the items and name
// the chunk of each. When the database refuses an item, such as for an id that another task has
// ([delaytask.ErrConflict]), nothing of its chunk is stored. The other items of the chunk have
// [delaytask.ErrChunkRefused]. Other chunks are stored all the same. [delaytask.ErrDuplicate] refuses nothing of the
// chunk: the task with the key exists. Of two items with one key the first wins.
//
// What [delaytask.WithOnConflict] asks for is done once all chunks are stored, in the order of the items. So a later
// item may also reschedule the task of an earlier one. [delaytask.ErrNotPending] and [delaytask.ErrContended] refuse
// nothing of the chunk.
//
// A nil error means that every item is stored or met an unfinished task with its key. Otherwise the error wraps that of
// the first item that was not stored. Saving again with the same keys, or with the ids of
// [delaytask.OutcomeUnknownError], stores what is missing and nothing twice.
func (s *Scheduler) SaveDelayTasks(
	ctx context.Context, items []delaytask.Item,
) (results []delaytask.SaveResult, err error) {
	if err := s.enter(ctx); err != nil {
		return nil, err
	}
	ctx, span := s.tracing.sendAll(ctx, items)
	defer func() { endSend(span, 0, err) }()
	if len(items) > request.MaxItems {
		return nil, fmt.Errorf("%w: got %d", delaytask.ErrBatchTooLarge, len(items))
	}
	carried := s.tracing.carried(ctx)
	saves := make([]delaytask.Save, len(items))
	for i, item := range items {
		save, err := s.newSave(carried, item.Tag, item.Body, item.Delay, item.Options)
		if err != nil {
			return nil, &delaytask.BatchError{Index: i, Err: err}
		}
		saves[i] = save
	}
	if results, err = s.engine.SaveAll(ctx, saves); err != nil {
		return nil, err
	}
	var lost int
	var first error
	for i := range results {
		if err := results[i].Err; err != nil && !errors.Is(err, delaytask.ErrDuplicate) {
			lost++
			if first == nil || errors.Is(first, delaytask.ErrChunkRefused) {
				first = err // rather the refusal than its consequence
			}
		}
	}
	if first != nil {
		return results, fmt.Errorf("%d of %d tasks were not stored, the first of them because: %w", lost, len(items),
			first)
	}
	return results, nil
}

// newSave checks all that can be checked without the database.
func (s *Scheduler) newSave(
	carried propagation.MapCarrier, tag string, body any, delay time.Duration, opts []delaytask.Option,
) (delaytask.Save, error) {
	save, err := request.NewSave(tag, body, delay, request.Limits{Body: s.bodyLimit}, opts...)
	if err != nil {
		return save, err
	}
	if save.ID != 0 && !ids.Valid(save.ID) {
		return save, fmt.Errorf("%w: got %d", delaytask.ErrInvalidID, save.ID)
	}
	save.Headers = s.tracing.join(save.Headers, carried)
	return save, nil
}
