package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/ids"
	"github.com/delaytask/delaytask/internal/request"
	"github.com/delaytask/delaytask/internal/wire"
)

// SaveDelayTask stores a task of the tag that is due after the delay, and returns its id once it is committed. The
// delay counts from when the service has accepted the task.
//
// The body is encoded as the library does it: a []byte, a string and a json.RawMessage are taken as they are, anything
// else is marshalled. A body that is JSON loses the white space between its tokens on the way, and is refused with
// [delaytask.ErrInvalidBody] when an object in it has a member twice.
//
// It returns an error about the arguments (nothing is sent then, or stored); [delaytask.ErrDuplicate] together with the
// id of the unfinished task that carries the key; [delaytask.ErrOverloaded]; [delaytask.ErrNotStored] when ctx or the
// retry time ended and the service, or its database, was not reached; or [delaytask.ErrOutcomeUnknown] when they ended
// before the outcome was known: save again with the id that [delaytask.OutcomeUnknownError] holds, which is safe.
// [delaytask.WithOnConflict] says what else a save with a key does and returns.
func (c *Client) SaveDelayTask(
	ctx context.Context, tag string, body any, delay time.Duration, opts ...delaytask.Option,
) (int64, error) {
	if err := c.enter(ctx); err != nil {
		return 0, err
	}
	save, drawn, err := c.newSave(tag, body, delay, opts)
	if err != nil {
		return 0, err
	}
	var saved wire.Saved
	r := &httpCall{method: http.MethodPost, path: "/v1/tasks", body: save, into: &saved, limit: tasks(1), again: true}
	if unclear, err := c.call(ctx, r); err != nil {
		err = saveError(err, unclear || !drawn && isAway(err), int64(save.ID))
		if busy, ok := errors.AsType[*delaytask.NotPendingError](err); ok &&
			!errors.Is(err, delaytask.ErrOutcomeUnknown) {
			return busy.ID, err
		}
		return 0, err
	}
	if saved.Duplicate {
		return int64(saved.ID), fmt.Errorf("save: %w", &delaytask.DuplicateError{ID: int64(saved.ID)})
	}
	return int64(saved.ID), nil
}

// saveError returns the error of a save that was not confirmed. unclear says that an earlier try, or an earlier save
// under an id of the caller's, may have stored the task.
func saveError(err error, unclear bool, id int64) error {
	if e, ok := errors.AsType[*Error](err); ok {
		switch {
		case e.Code == wire.CodeNotPending: // the first try may have rescheduled the task, which runs by now
		case e.Status == http.StatusBadRequest, e.Status == http.StatusConflict,
			e.Status == http.StatusUnprocessableEntity,
			e.Status == http.StatusRequestEntityTooLarge:
			unclear = false // the first try stored it
		case e.Code == wire.CodeOutcomeUnknown && e.notStored:
			// The service cannot tell a new id from one of an earlier save.
			now := *e
			now.Code, err = wire.CodeNotStored, &now
		case e.Code == wire.CodeOutcomeUnknown:
			unclear = true
		}
		if e.Code == wire.CodeInvalidJSON {
			err = fmt.Errorf("%w: %w", delaytask.ErrInvalidBody, err)
		}
	}
	if s, ok := errors.AsType[*noAnswer](err); ok && !s.sent {
		err = fmt.Errorf("%w: %w", delaytask.ErrNotStored, err)
	}
	if unclear {
		return &delaytask.OutcomeUnknownError{ID: id, Err: err}
	}
	return fmt.Errorf("save: %w", err)
}

// newSave checks all that can be checked without the service. It draws an id where the caller gives none.
func (c *Client) newSave(
	tag string, body any, delay time.Duration, opts []delaytask.Option,
) (save *wire.Save, drawn bool, err error) {
	s, err := request.NewSave(tag, body, delay, request.Limits{Body: c.bodyLimit}, opts...)
	if err != nil {
		return nil, false, err
	}
	switch {
	case s.ID == 0:
		s.ID, drawn = NewID(), true
	case !ids.Valid(s.ID):
		return nil, false, fmt.Errorf("%w: got %d", delaytask.ErrInvalidID, s.ID)
	}
	return wire.FromSave(&s), drawn, nil
}

// SaveDelayTasks stores up to 10,000 tasks with one request. All are checked first: a bad item is a
// [delaytask.BatchError] that names its index, and nothing is stored. Then they are stored in chunks, as the library
// does it: each as a whole or not at all. The results are in the order of the items and name the chunk of each; the
// others of a chunk that was refused for one of its tasks have [delaytask.ErrChunkRefused].
//
// A nil error means that every item is stored or met an unfinished task with its key ([delaytask.ErrDuplicate] in its
// result). Otherwise the error wraps the error of the first item that was not stored. When no answer came, every result
// is a [delaytask.OutcomeUnknownError] with the id to save that item again with.
func (c *Client) SaveDelayTasks(ctx context.Context, items []delaytask.Item) ([]delaytask.SaveResult, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	if len(items) > request.MaxItems {
		return nil, fmt.Errorf("%w: got %d", delaytask.ErrBatchTooLarge, len(items))
	}
	saves, named := make([]*wire.Save, len(items)), make([]bool, len(items)) // named: under ids of the caller's
	for i, item := range items {
		save, drawn, err := c.newSave(item.Tag, item.Body, item.Delay, item.Options)
		if err != nil {
			return nil, &delaytask.BatchError{Index: i, Err: err}
		}
		saves[i], named[i] = save, !drawn
	}
	if len(items) == 0 {
		return []delaytask.SaveResult{}, nil
	}
	var saved wire.BatchSaved
	r := &httpCall{method: http.MethodPost, path: "/v1/tasks/batch", body: saves, into: &saved, limit: batchAnswer,
		again: true}
	unclear, err := c.call(ctx, r)
	if err == nil && len(saved.Results) != len(items) {
		unclear, err = true, fmt.Errorf("the answer has %d results for %d tasks", len(saved.Results), len(items))
	}
	if err != nil {
		return batchError(saves, err, unclear || slices.Contains(named, true) && isAway(err))
	}
	results := make([]delaytask.SaveResult, len(items))
	for i := range results {
		results[i] = saveResult(&saved.Results[i], int64(saves[i].ID), unclear, named[i])
	}
	numberChunks(results, saved.Chunks)
	return results, firstLost(results)
}

// saveResult returns what became of a task of a batch. unclear says that an earlier try may have been served, named
// that the caller has chosen the id, perhaps because of an earlier save.
func saveResult(r *wire.BatchResult, id int64, unclear, named bool) delaytask.SaveResult {
	switch {
	case r.Duplicate:
		return delaytask.SaveResult{ID: int64(r.ID), Err: &delaytask.DuplicateError{ID: int64(r.ID)}}
	case r.NotStored && !unclear && !named:
		return delaytask.SaveResult{Err: refusal(wire.CodeNotStored, r.Detail, 0)}
	case r.Code == wire.CodeOutcomeUnknown, r.Code == wire.CodeNotStored,
		r.Code == wire.CodeNotPending && unclear: // the first try may have rescheduled the task, which runs by now
		return delaytask.SaveResult{Err: &delaytask.OutcomeUnknownError{ID: id, Err: refusal(r.Code, r.Detail, id)}}
	case r.Code == wire.CodeNotPending:
		return delaytask.SaveResult{ID: int64(r.ID), Err: refusal(r.Code, r.Detail, int64(r.ID))}
	case r.Code != "":
		return delaytask.SaveResult{Err: refusal(r.Code, r.Detail, int64(r.ID))}
	default:
		return delaytask.SaveResult{ID: int64(r.ID), Rescheduled: r.Rescheduled}
	}
}

// numberChunks sets the chunk of each result.
func numberChunks(results []delaytask.SaveResult, chunks []wire.BatchChunk) {
	first := 0
	for n, c := range chunks {
		last := min(first+max(c.Count, 0), len(results))
		for i := first; i < last; i++ {
			results[i].Chunk = n
		}
		first = last
	}
}

// batchError returns the error of a batch that was not confirmed.
func batchError(saves []*wire.Save, err error, unclear bool) ([]delaytask.SaveResult, error) {
	if e, ok := errors.AsType[*Error](err); ok && e.Code == wire.CodeRequestTooLarge {
		return nil, fmt.Errorf("%w: send it in parts: %w", delaytask.ErrBatchTooLarge, err)
	}
	first := saveError(err, unclear, int64(saves[0].ID))
	if !errors.Is(first, delaytask.ErrOutcomeUnknown) {
		if e, ok := errors.AsType[*Error](err); ok && len(e.places) > 0 {
			if i, found := placeOf(e.places[0].Location); found {
				return nil, &delaytask.BatchError{Index: i, Err: first}
			}
		}
		return nil, first
	}
	results := make([]delaytask.SaveResult, len(saves))
	for i, s := range saves {
		results[i].Err = &delaytask.OutcomeUnknownError{ID: int64(s.ID), Err: err}
	}
	return results, firstLost(results)
}

// placeOf reads the index out of "body[17]".
func placeOf(place string) (int, bool) {
	digits, isItem := strings.CutPrefix(place, "body[")
	digits, isItem2 := strings.CutSuffix(digits, "]")
	i, err := strconv.Atoi(digits)
	return i, isItem && isItem2 && err == nil
}

func firstLost(results []delaytask.SaveResult) error {
	var lost int
	var first error
	for _, r := range results {
		if r.Err != nil && !errors.Is(r.Err, delaytask.ErrDuplicate) {
			lost++
			if first == nil || errors.Is(first, delaytask.ErrChunkRefused) {
				first = r.Err // rather the refusal than its consequence
			}
		}
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("%d of %d tasks were not stored, the first of them because: %w", lost, len(results), first)
}
