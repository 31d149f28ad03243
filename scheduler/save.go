package scheduler

import (
	"context"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
)

// SaveDelayTask stores a task of the tag that is due after the delay, and returns its id once it is committed. It need
// not be registered here: any process that serves the tag runs it.
//
// A body that is a []byte, a string or a json.RawMessage is stored as it is; nil is an empty body; anything else is
// marshalled to JSON. The delay is rounded up to a millisecond; 0 means now.
//
// It returns an error about the arguments (nothing is stored then); [delaytask.ErrDuplicate] together with the id of
// the unfinished task that carries the key; [delaytask.ErrOverloaded] when the database takes less than is offered;
// [delaytask.ErrNotStored] when ctx ended and nothing was sent to the database, with the cause; or
// [delaytask.ErrOutcomeUnknown] when ctx ended before the outcome was known: save again with the id that
// [delaytask.OutcomeUnknownError] holds, which is safe. [delaytask.WithOnConflict] says what else a save with a key
// does and returns. [delaytask.ErrContended] means that the key belonged to another task each time; save again.
func (s *Scheduler) SaveDelayTask(
	ctx context.Context, tag string, body any, delay time.Duration, opts ...delaytask.Option,
) (int64, error) {
	saved, err := s.core.Save(ctx, nil, tag, body, delay, opts)
	return saved.ID, err
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
) (int64, error) {
	if err := core.CheckTx(tx); err != nil {
		return 0, err
	}
	saved, err := s.core.Save(ctx, tx, tag, body, delay, opts)
	return saved.ID, err
}

// Committed says that the transactions have ended in which the tasks were saved or changed. Those that are due start at
// once. Without it they are looked for, after 2 ms at first, and then ever less often. It does not wait. Ids of other
// tasks do no harm.
func (s *Scheduler) Committed(ids ...int64) { s.core.Committed(ids...) }

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
// A nil error means that every item is stored or met an unfinished task with its key. Otherwise the error wraps the one
// of the first item that was not stored. Saving again with the same keys, or with the ids of
// [delaytask.OutcomeUnknownError], stores what is missing and nothing twice.
func (s *Scheduler) SaveDelayTasks(
	ctx context.Context, items []delaytask.Item,
) (results []delaytask.SaveResult, err error) {
	return s.core.SaveDelayTasks(ctx, items)
}
