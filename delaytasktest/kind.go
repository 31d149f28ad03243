package delaytasktest

import (
	"testing"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

// Saved is a saved task with its body decoded.
type Saved[T any] struct {
	delaytask.TaskRow
	Body T
}

// SavedOf returns the tasks of the kind that match, as [Scheduler.Saved] does. It fails the test at once when the body
// of one does not decode.
func SavedOf[T any](t testing.TB, s *Scheduler, kind processor.Kind[T], matchers ...Matcher) []Saved[T] {
	t.Helper()
	var all []Saved[T]
	for _, task := range s.Saved(t, kind.Tag(), matchers...) {
		all = append(all, decoded(t, kind, task))
	}
	return all
}

// RequireSavedOf returns the one task of the kind that matches, as [Scheduler.RequireSaved] does. It fails the test at
// once when its body does not decode.
func RequireSavedOf[T any](t testing.TB, s *Scheduler, kind processor.Kind[T], matchers ...Matcher) Saved[T] {
	t.Helper()
	return decoded(t, kind, s.RequireSaved(t, kind.Tag(), matchers...))
}

// RequireNotSavedOf fails the test at once when a task of the kind matches.
func RequireNotSavedOf[T any](t testing.TB, s *Scheduler, kind processor.Kind[T], matchers ...Matcher) {
	t.Helper()
	s.RequireNotSaved(t, kind.Tag(), matchers...)
}

// BodyOf matches tasks whose body decodes as the kind's, and satisfies ok.
func BodyOf[T any](kind processor.Kind[T], text string, ok func(body T) bool) Matcher {
	return Where(text, func(task delaytask.TaskRow) bool {
		body, err := kind.Decode(task.Body)
		return err == nil && ok(body)
	})
}

func decoded[T any](t testing.TB, kind processor.Kind[T], task delaytask.TaskRow) Saved[T] {
	t.Helper()
	body, err := kind.Decode(task.Body)
	if err != nil {
		t.Fatalf("delaytasktest: task %d: %v", task.ID, err)
	}
	return Saved[T]{task, body}
}
