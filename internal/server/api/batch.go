package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/server/reqbody"
	"github.com/delaytask/delaytask/internal/wire"
)

const (
	// mostBatch is how many tasks one call saves or completes.
	mostBatch = 10_000
	// mostBatchHeaders is how many headers the tasks of a batch may have together. A header of few bytes takes many
	// times as much memory until its task is stored.
	mostBatchHeaders = 100_000
)

type batchInput struct {
	ContentType    string `header:"Content-Type" hidden:"true"`
	IdempotencyKey string `header:"Idempotency-Key" hidden:"true"`
	RawBody        []byte `contentType:"application/x-ndjson"`
}

func (a *API) batchOperation() {
	op := a.operation(http.MethodPost, batchPath, "saveTasks", "Save up to 10,000 tasks",
		"A JSON array of tasks, or one task a line (application/x-ndjson). All are checked first: when one of them "+
			"is wrong, nothing is stored and the answer names its line, or its place in the array. Then they are "+
			"stored in chunks of up to 500 tasks and 4 MiB, each as a whole or not at all; the answer says for "+
			"every chunk and every task what became of it. All tasks of a stored chunk are there, duplicates "+
			"included; no task of a refused one, or of one that was not tried, was stored. A duplicate key refuses "+
			"nothing, an id of another task refuses its chunk. What on_conflict asks for is done once all "+
			"chunks are stored, in the order of the tasks. To repeat a batch is safe where its tasks have keys or "+
			"ids.",
		groupTasks)
	huma.Register(a.spec, op, a.saveBatch)
}

func (a *API) saveBatch(ctx context.Context, in *batchInput) (*output[wire.BatchSaved], error) {
	if in.IdempotencyKey != "" {
		return nil, wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidHeader,
			"a batch takes no Idempotency-Key: give its tasks keys, or save them one by one")
	}
	saves, place, err := a.readBatch(in)
	if err != nil {
		return nil, a.problem(err)
	}
	items := make([]delaytask.Item, len(saves))
	for i := range saves {
		if items[i], err = itemOf(&saves[i]); err != nil {
			return nil, located(a.problem(err), place(i))
		}
		saves[i] = wire.Save{} // the item has its body
	}
	results, err := a.operator.SaveAll(ctx, by(ctx), items)
	if wrong, ok := errors.AsType[*delaytask.BatchError](err); ok {
		return nil, located(a.problem(wrong.Err), place(wrong.Index))
	}
	if results == nil && err != nil {
		return nil, a.problem(err)
	}
	return &output[wire.BatchSaved]{Body: a.batchSaved(results, place)}, nil
}

// readBatch reads the tasks, and returns how the place of each is called.
func (a *API) readBatch(in *batchInput) (saves []wire.Save, place func(int) string, err error) {
	media, p := mediaOf(http.Header{"Content-Type": {in.ContentType}})
	if p != nil {
		return nil, nil, p
	}
	if media == mediaNDJSON {
		return a.readLines(in.RawBody)
	}
	place = func(i int) string { return fmt.Sprintf("body[%d]", i) }
	saves, err = a.readArray(in.RawBody, place)
	return saves, place, err
}

// loosely finds the ends of values. It keeps no names of members, so it takes no memory for them.
var loosely = json.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

func (a *API) readArray(body []byte, place func(int) string) (saves []wire.Save, err error) {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(body), loosely)
	headers := 0
	if token, err := decoder.ReadToken(); err != nil || token.Kind() != '[' {
		return nil, wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidJSON, "want a JSON array of tasks")
	}
	for decoder.PeekKind() != ']' {
		task, err := decoder.ReadValue()
		if err != nil {
			return nil, invalidJSON(err)
		}
		if saves, err = a.readTask(saves, task, &headers, place); err != nil {
			return nil, err
		}
	}
	if _, err := decoder.ReadToken(); err != nil {
		return nil, invalidJSON(err)
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, afterValue()
	}
	return saves, nil
}

func (a *API) readLines(body []byte) (saves []wire.Save, place func(int) string, err error) {
	var lines []int
	place = func(i int) string { return fmt.Sprintf("line %d", lines[i]) }
	n, headers := 0, 0
	for line := range bytes.Lines(body) {
		n++
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		lines = append(lines, n)
		if saves, err = a.readTask(saves, line, &headers, place); err != nil {
			return nil, nil, err
		}
	}
	return saves, place, nil
}

// widest is how many bytes of JSON one byte of text takes at most: \u0001.
const widest = 6

// readTask appends a task to a batch, and counts its headers. What is too long is refused before its members are looked
// at, which takes a multiple of its size.
func (a *API) readTask(
	saves []wire.Save, task []byte, headers *int, place func(int) string,
) ([]wire.Save, error) {
	if len(saves) == mostBatch {
		return nil, delaytask.ErrBatchTooLarge
	}
	at := place(len(saves))
	if err := a.exceeds(task); err != nil {
		return nil, located(err, at)
	}
	if p := checkSyntax(task); p != nil {
		return nil, located(p, at)
	}
	var s wire.Save
	if err := json.Unmarshal(task, &s, strictly); err != nil {
		return nil, located(misfit(err), at)
	}
	if *headers += len(s.Headers); *headers > mostBatchHeaders {
		return nil, wire.NewProblem(http.StatusBadRequest, wire.CodeBatchTooLarge,
			fmt.Sprintf("the tasks have over %d headers together; send them in parts", mostBatchHeaders))
	}
	return append(saves, s), nil
}

// exceeds refuses a long task whose body is longer than any may be, or that has too much beside its body.
func (a *API) exceeds(task []byte) error {
	if len(task) <= a.bodyLimit+reqbody.Envelope {
		return nil
	}
	var parts struct {
		Body jsontext.Value `json:"body"`
		Text jsontext.Value `json:"body_text"`
	}
	if err := json.Unmarshal(task, &parts, loosely); err != nil {
		if _, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
			return invalidJSON(err)
		}
		return misfit(err)
	}
	if len(parts.Body) > a.bodyLimit || len(parts.Text) > widest*a.bodyLimit+len(`""`) {
		return a.problem(delaytask.ErrBodyTooLarge)
	}
	if beside := len(task) - len(parts.Body) - len(parts.Text); beside > reqbody.Envelope {
		return wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidJSON,
			fmt.Sprintf("the task has %d bytes beside its body, at most %d are allowed", beside, reqbody.Envelope))
	}
	return nil
}

// misfit is the problem of well-formed JSON of the wrong shape.
func misfit(err error) error {
	return wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidJSON,
		"the request's body does not fit: "+plainly(err).Error())
}

// located adds to a problem which of many tasks it is about.
func located(err error, place string) error {
	p, ok := errors.AsType[*wire.Problem](err)
	if !ok {
		return err
	}
	p.Errors = []wire.Detail{{Location: place, Message: p.Detail}}
	p.Detail = place + ": " + p.Detail
	return p
}

// batchSaved returns the outcome of each task of a batch, and of each chunk.
func (a *API) batchSaved(results []delaytask.SaveResult, place func(int) string) wire.BatchSaved {
	saved := wire.BatchSaved{Results: make([]wire.BatchResult, len(results)), Chunks: []wire.BatchChunk{}}
	stored := map[int]bool{} // the chunks of which a task is new: all of each is there
	for _, r := range results {
		stored[r.Chunk] = stored[r.Chunk] || r.Err == nil && !r.Rescheduled
	}
	for i, r := range results {
		if r.Chunk == len(saved.Chunks) {
			saved.Chunks = append(saved.Chunks, wire.BatchChunk{Outcome: wire.ChunkStored})
		}
		chunk := &saved.Chunks[r.Chunk]
		chunk.Count++
		saved.Results[i] = a.batchResult(r, place)
		if outcome := outcomeOf(r.Err); outcome != wire.ChunkStored && chunk.Outcome != wire.ChunkUnknown &&
			!stored[r.Chunk] {
			chunk.Outcome = outcome
		}
		if outcomeOf(r.Err) == wire.ChunkRefused && !errors.Is(r.Err, delaytask.ErrChunkRefused) {
			chunk.Errors = append(chunk.Errors, wire.Detail{Location: place(i), Message: saved.Results[i].Detail})
		}
	}
	return saved
}

func (a *API) batchResult(r delaytask.SaveResult, place func(int) string) wire.BatchResult {
	result := wire.BatchResult{ID: wire.ID(r.ID), Rescheduled: r.Rescheduled}
	switch {
	case errors.Is(r.Err, delaytask.ErrDuplicate):
		result.Duplicate = true
	case r.Err != nil:
		p, _ := errors.AsType[*wire.Problem](a.problem(r.Err))
		result.Code, result.Detail, result.NotStored = p.Code, p.Detail, p.NotStored
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
	case errors.Is(err, delaytask.ErrNotPending), errors.Is(err, delaytask.ErrContended):
		return wire.ChunkStored // these are about the existing task of an item
	case errors.Is(err, delaytask.ErrOverloaded), errors.Is(err, delaytask.ErrClosed),
		errors.Is(err, delaytask.ErrNotStored),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return wire.ChunkNotTried
	default:
		return wire.ChunkRefused
	}
}
