package main

import (
	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/view"
	"github.com/delaytask/delaytask/internal/wire"
)

// taskView is a task in JSON as the HTTP API has it, but for the body: here it is always the text that is stored.
type taskView struct {
	wire.Task
	Body *string `json:"body,omitempty"` // absent where it was not read
}

func viewOf(t *delaytask.Task) taskView {
	v := taskView{Task: view.Task(t)}
	v.Task.Body = wire.Body{}
	if t.Body != nil {
		body := string(t.Body)
		v.Body = &body
	}
	return v
}

func viewsOf(tasks []delaytask.Task) []taskView {
	views := make([]taskView, len(tasks)) // not nil: an empty list is [] in JSON
	for i := range tasks {
		views[i] = viewOf(&tasks[i])
	}
	return views
}
