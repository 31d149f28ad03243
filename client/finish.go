package client

import (
	"context"
	"errors"
	"fmt"

	"github.com/delaytask/delaytask/processor"
)

// mostFinished is how many results one request carries.
const mostFinished = 500

// finish is a completed task whose result travels with others: what comes while a request is under way goes with the next.
type finish struct {
	token  processor.Token
	answer chan error // takes one
}

func (w *worker) finish(ctx context.Context, t processor.Token) error {
	f := &finish{token: t, answer: make(chan error, 1)}
	if err := w.finishes.Add(f); err != nil {
		return err
	}
	select {
	case err := <-f.answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *worker) flush(batch []*finish) {
	tokens := make([]processor.Token, len(batch))
	for i, f := range batch {
		tokens[i] = f.token
	}
	answers, err := w.client.finishAll(w.reports, tokens, always)
	if _, refused := errors.AsType[*Error](err); refused && len(batch) > 1 {
		// Somebody in the batch may not: that is no fault of the others.
		for _, f := range batch {
			w.flush([]*finish{f})
		}
		return
	}
	for i, f := range batch {
		if err != nil {
			f.answer <- err
		} else {
			f.answer <- answers[i]
		}
	}
}

func (w *worker) flushPanicked(batch []*finish, value any) {
	for _, f := range batch {
		select {
		case f.answer <- fmt.Errorf("finishing tasks panicked: %v", value):
		default: // it had its answer
		}
	}
}
