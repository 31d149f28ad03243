package delaytasktest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/request"
)

// Matcher is a condition on a saved task.
type Matcher struct {
	text string
	ok   func(*delaytask.TaskRow) bool
}

// Key matches tasks that were saved with the key.
func Key(key string) Matcher {
	return Matcher{fmt.Sprintf("key %q", key), func(t *delaytask.TaskRow) bool { return t.Key == key }}
}

// Body matches tasks whose body is what a save would store for the value. Two JSON bodies are compared by value,
// whatever their white space and the order of their fields.
func Body(value any) Matcher {
	save, err := request.NewSave("body", value, 0, request.Limits{Body: 1 << 30})
	return Matcher{fmt.Sprintf("body %s", save.Body), func(t *delaytask.TaskRow) bool {
		return err == nil && sameBody(t.Body, save.Body)
	}}
}

func sameBody(a, b []byte) bool {
	var x, y any
	if json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil {
		return reflect.DeepEqual(x, y)
	}
	return string(a) == string(b)
}

// Delay matches tasks that were saved with the delay, or rescheduled by it.
func Delay(d time.Duration) Matcher {
	return Matcher{fmt.Sprintf("delay %v", d), func(t *delaytask.TaskRow) bool { return t.Delay == d }}
}

// ExpectedAt matches tasks that are expected at the time.
func ExpectedAt(at time.Time) Matcher {
	return Matcher{fmt.Sprintf("expected at %v", at), func(t *delaytask.TaskRow) bool { return t.Expected.Equal(at) }}
}

// Header matches tasks with the header.
func Header(name, value string) Matcher {
	return Matcher{fmt.Sprintf("header %q: %q", name, value), func(t *delaytask.TaskRow) bool {
		got, ok := t.Headers[name]
		return ok && got == value
	}}
}

// Status matches tasks that have the status now.
func Status(status delaytask.Status) Matcher {
	return Matcher{fmt.Sprintf("status %s", status), func(t *delaytask.TaskRow) bool { return t.Status == status }}
}

// Where matches by a function. A failure's message names the condition by text.
func Where(text string, ok func(task delaytask.TaskRow) bool) Matcher {
	return Matcher{text, func(t *delaytask.TaskRow) bool { return ok(*t) }}
}

// Saved returns the tasks of the tag that match, in the order of their saves, whatever their status is now.
func (s *Scheduler) Saved(t testing.TB, tag string, matchers ...Matcher) []delaytask.TaskRow {
	t.Helper()
	matching, _ := s.saved(t, tag, matchers)
	return matching
}

// RequireSaved returns the one task of the tag that matches. It fails the test at once when no task matches, or more
// than one.
func (s *Scheduler) RequireSaved(t testing.TB, tag string, matchers ...Matcher) delaytask.TaskRow {
	t.Helper()
	matching, all := s.saved(t, tag, matchers)
	if len(matching) != 1 {
		t.Fatalf("%d tasks were saved %s, want 1; %s", len(matching), describe(tag, matchers), listed(tag, all))
	}
	return matching[0]
}

// RequireNotSaved fails the test at once when a task of the tag matches.
func (s *Scheduler) RequireNotSaved(t testing.TB, tag string, matchers ...Matcher) {
	t.Helper()
	if matching, _ := s.saved(t, tag, matchers); len(matching) > 0 {
		t.Fatalf("%d tasks were saved %s, want none; %s", len(matching), describe(tag, matchers), listed(tag, matching))
	}
}

func (s *Scheduler) saved(t testing.TB, tag string, matchers []Matcher) (matching, all []delaytask.TaskRow) {
	t.Helper()
	filter := delaytask.Filter{Tag: tag, Bodies: true, Limit: 1000}
	for {
		page, err := s.List(context.Background(), filter)
		if err != nil {
			t.Fatalf("delaytasktest: list the tasks of tag %q: %v", tag, err)
		}
		all = append(all, page.Tasks...)
		if filter.After = page.Next; page.Next == "" {
			break
		}
	}
	slices.SortFunc(all, func(a, b delaytask.TaskRow) int { return cmp.Compare(a.ID, b.ID) })
	for i := range all {
		if matches(&all[i], matchers) {
			matching = append(matching, all[i])
		}
	}
	return matching, all
}

func matches(task *delaytask.TaskRow, matchers []Matcher) bool {
	for _, m := range matchers {
		if !m.ok(task) {
			return false
		}
	}
	return true
}

func describe(tag string, matchers []Matcher) string {
	wants := []string{"tag " + tag}
	for _, m := range matchers {
		wants = append(wants, m.text)
	}
	return "with " + strings.Join(wants, ", ")
}

func listed(tag string, tasks []delaytask.TaskRow) string {
	if len(tasks) == 0 {
		return "no task of tag " + tag + " was saved at all"
	}
	var text strings.Builder
	text.WriteString("of the tag there are:")
	for _, t := range tasks {
		fmt.Fprintf(&text, "\n  task %d: %s, key %q, delay %v, expected at %v, body %.200s",
			t.ID, t.Status, t.Key, t.Delay, t.Expected, t.Body)
	}
	return text.String()
}
