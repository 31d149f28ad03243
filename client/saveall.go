package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

// SaveDelayTasks stores up to 10,000 tasks with one request. All are checked first: a bad item is a [processor.BatchError] that
// names its index, and nothing is stored. Then they are stored in chunks, as the library does it: each as a whole or not at all. The
// results are in the order of the items and name the chunk of each; the others of a chunk that was refused for one of its tasks have
// [processor.ErrChunkRefused].
//
// A nil error means that every item is stored or met an unfinished task with its key ([processor.ErrDuplicate] in its result).
// Otherwise the error wraps that of the first item that was not stored. When no answer came, every result is a
// [processor.OutcomeUnknownError] with the id to save that item again with.
func (c *Client) SaveDelayTasks(ctx context.Context, items []processor.Item) ([]processor.SaveResult, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	if len(items) > processor.MaxItems {
		return nil, fmt.Errorf("%w: got %d", processor.ErrBatchTooLarge, len(items))
	}
	saves := make([]*wire.Save, len(items))
	for i, item := range items {
		save, err := c.newSave(item.Tag, item.Body, item.Delay, item.Options)
		if err != nil {
			return nil, &processor.BatchError{Index: i, Err: err}
		}
		saves[i] = save
	}
	if len(items) == 0 {
		return []processor.SaveResult{}, nil
	}
	var saved wire.BatchSaved
	r := &request{method: http.MethodPost, path: "/v1/tasks/batch", body: saves, into: &saved, limit: batchAnswer, again: true}
	unclear, err := c.call(ctx, r)
	if err == nil && len(saved.Results) != len(items) {
		unclear, err = true, fmt.Errorf("the answer has %d results for %d tasks", len(saved.Results), len(items))
	}
	if err != nil {
		return batchError(saves, err, unclear)
	}
	results := make([]processor.SaveResult, len(items))
	for i := range results {
		results[i] = saveResult(&saved.Results[i], int64(saves[i].ID))
	}
	numberChunks(results, saved.Chunks)
	return results, firstLost(results)
}

// batchAnswer bounds the answer to a batch, a line for each task.
const batchAnswer = 16 << 20

func saveResult(r *wire.BatchResult, id int64) processor.SaveResult {
	switch {
	case r.Duplicate:
		return processor.SaveResult{ID: int64(r.ID), Err: &processor.DuplicateError{ID: int64(r.ID)}}
	case r.Code == wire.CodeOutcomeUnknown:
		return processor.SaveResult{Err: &processor.OutcomeUnknownError{ID: id, Err: refusal(r.Code, r.Detail, id)}}
	case r.Code != "":
		return processor.SaveResult{Err: refusal(r.Code, r.Detail, int64(r.ID))}
	default:
		return processor.SaveResult{ID: int64(r.ID)}
	}
}

// numberChunks says of which chunk each result is.
func numberChunks(results []processor.SaveResult, chunks []wire.BatchChunk) {
	first := 0
	for n, c := range chunks {
		last := min(first+max(c.Count, 0), len(results))
		for i := first; i < last; i++ {
			results[i].Chunk = n
		}
		first = last
	}
}

// batchError says what is known of a batch that was not confirmed.
func batchError(saves []*wire.Save, err error, unclear bool) ([]processor.SaveResult, error) {
	if e, ok := errors.AsType[*Error](err); ok && e.Code == wire.CodeRequestTooLarge {
		return nil, fmt.Errorf("%w: send it in parts: %w", processor.ErrBatchTooLarge, err)
	}
	first := saveError(err, unclear, int64(saves[0].ID))
	if !errors.Is(first, processor.ErrOutcomeUnknown) {
		if e, ok := errors.AsType[*Error](err); ok {
			if i, found := placeOf(e.place); found {
				return nil, &processor.BatchError{Index: i, Err: first}
			}
		}
		return nil, first
	}
	results := make([]processor.SaveResult, len(saves))
	for i, s := range saves {
		results[i].Err = &processor.OutcomeUnknownError{ID: int64(s.ID), Err: err}
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

func firstLost(results []processor.SaveResult) error {
	var lost int
	var first error
	for _, r := range results {
		if r.Err != nil && !errors.Is(r.Err, processor.ErrDuplicate) {
			lost++
			if first == nil || errors.Is(first, processor.ErrChunkRefused) {
				first = r.Err // rather what was refused than what suffered from it
			}
		}
	}
	if first == nil {
		return nil
	}
	return fmt.Errorf("%d of %d tasks were not stored, the first of them because: %w", lost, len(results), first)
}
