package processor

import (
	"context"
	"encoding/json"
	"fmt"
)

// Typed makes a processor of a function that takes the body decoded from JSON. A body that does not decode fails the
// task at once, as by [Permanent]: it will not decode the next time either. An empty body is not JSON and does not
// decode.
func Typed[T any](fn func(ctx context.Context, task *Task, body T) error) Processor {
	if fn == nil {
		return nil // so that Register refuses it
	}
	return Func(func(ctx context.Context, task *Task) error {
		var body T
		if err := json.Unmarshal(task.Body, &body); err != nil {
			return Permanent(fmt.Errorf("decode the body as %T: %w", body, err))
		}
		return fn(ctx, task, body)
	})
}
