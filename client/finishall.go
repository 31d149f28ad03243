package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
)

// FinishAll completes up to 10,000 tasks with one request. There is one answer for each token, nil or what Finish would
// return. It returns no answers and [processor.ErrBatchTooLarge] for more, or another error when the request as a whole was
// not served; then any of them may be completed, and calling again is safe.
func (c *Client) FinishAll(ctx context.Context, tokens []processor.Token) ([]error, error) {
	if err := c.enter(ctx); err != nil {
		return nil, err
	}
	return c.finishAll(ctx, tokens, c.patience)
}

func (c *Client) finishAll(ctx context.Context, tokens []processor.Token, patience time.Duration) ([]error, error) {
	if len(tokens) > processor.MaxItems {
		return nil, fmt.Errorf("%w: got %d", processor.ErrBatchTooLarge, len(tokens))
	}
	answers := make([]error, len(tokens))
	var body wire.FinishBatch
	var places []int // of what is sent in the answers
	for i, t := range tokens {
		if answers[i] = t.Check(); answers[i] == nil {
			body.Tokens, places = append(body.Tokens, t.String()), append(places, i)
		}
	}
	if len(places) == 0 {
		return answers, nil
	}
	var reply wire.FinishBatchReply
	r := &request{method: http.MethodPost, path: "/v1/tasks/finish", body: body, into: &reply, limit: batchAnswer, again: true}
	unclear, err := c.repeat(ctx, r, patience)
	if err == nil && len(reply.Results) != len(places) {
		err = fmt.Errorf("the answer has %d results for %d tasks", len(reply.Results), len(places))
	}
	if err != nil {
		return nil, fmt.Errorf("finish tasks: %w", err)
	}
	for i, result := range reply.Results {
		t := tokens[places[i]]
		err := refusal(result.Code, result.Detail, t.ID)
		if unclear && errors.Is(err, processor.ErrLeaseLost) {
			err = c.finished(ctx, t, err)
		}
		answers[places[i]] = err
	}
	return answers, nil
}
