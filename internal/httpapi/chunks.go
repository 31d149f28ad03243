package httpapi

import (
	"context"
	"errors"
	"fmt"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
)

// batchSaved tells what became of each task of a batch, and of each chunk.
func (a *API) batchSaved(results []delaytask.SaveResult, place func(int) string) wire.BatchSaved {
	saved := wire.BatchSaved{Results: make([]wire.BatchResult, len(results)), Chunks: []wire.BatchChunk{}}
	for i, r := range results {
		if r.Chunk == len(saved.Chunks) {
			saved.Chunks = append(saved.Chunks, wire.BatchChunk{Outcome: wire.ChunkStored})
		}
		chunk := &saved.Chunks[r.Chunk]
		chunk.Count++
		saved.Results[i] = a.batchResult(r, place)
		if outcome := outcomeOf(r.Err); outcome != wire.ChunkStored && chunk.Outcome != wire.ChunkUnknown {
			chunk.Outcome = outcome
		}
		if outcomeOf(r.Err) == wire.ChunkRefused && !errors.Is(r.Err, delaytask.ErrChunkRefused) {
			chunk.Errors = append(chunk.Errors, wire.Detail{Location: place(i), Message: saved.Results[i].Detail})
		}
	}
	return saved
}

func (a *API) batchResult(r delaytask.SaveResult, place func(int) string) wire.BatchResult {
	result := wire.BatchResult{ID: wire.ID(r.ID)}
	switch {
	case errors.Is(r.Err, delaytask.ErrDuplicate):
		result.Duplicate = true
	case r.Err != nil:
		p, _ := errors.AsType[*wire.Problem](a.problem(r.Err))
		result.Code, result.Detail = p.Code, p.Detail
		if p.TaskID != 0 {
			result.ID = p.TaskID
		}
	}
	if chunk, ok := errors.AsType[*delaytask.ChunkError](r.Err); ok && result.Code == wire.CodeChunkRefused {
		result.Detail = fmt.Sprintf("not stored, because %s of its chunk was refused", place(chunk.Index))
	}
	return result
}

// outcomeOf is the outcome of a chunk with a task that has this error.
func outcomeOf(err error) string {
	switch {
	case err == nil, errors.Is(err, delaytask.ErrDuplicate):
		return wire.ChunkStored
	case errors.Is(err, delaytask.ErrOutcomeUnknown):
		return wire.ChunkUnknown
	case errors.Is(err, delaytask.ErrOverloaded), errors.Is(err, delaytask.ErrClosed),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return wire.ChunkNotTried
	default:
		return wire.ChunkRefused
	}
}
