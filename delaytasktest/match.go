package delaytasktest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

// Matcher is a condition on a saved task.
type Matcher struct {
	text string
	ok   func(*delaytask.Task) bool
}

// Key matches tasks that were saved with the key.
func Key(key string) Matcher {
	return Matcher{fmt.Sprintf("key %q", key), func(t *delaytask.Task) bool { return t.Key == key }}
}

// Body matches tasks whose body is what a save would store for the value. Two bodies that are both JSON are compared by what
// they mean, whatever their white space and the order of their fields.
func Body(value any) Matcher {
	save, err := processor.NewSave("body", value, 0, processor.Limits{Body: 1 << 30})
	return Matcher{fmt.Sprintf("body %s", save.Body), func(t *delaytask.Task) bool {
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
	return Matcher{fmt.Sprintf("delay %v", d), func(t *delaytask.Task) bool { return t.Delay == d }}
}

// ExpectedAt matches tasks that are promised for the moment.
func ExpectedAt(at time.Time) Matcher {
	return Matcher{fmt.Sprintf("expected at %v", at), func(t *delaytask.Task) bool { return t.Expected.Equal(at) }}
}

// Header matches tasks with the header.
func Header(name, value string) Matcher {
	return Matcher{fmt.Sprintf("header %q: %q", name, value), func(t *delaytask.Task) bool {
		got, ok := t.Headers[name]
		return ok && got == value
	}}
}

// Status matches tasks that stand there now.
func Status(status delaytask.Status) Matcher {
	return Matcher{fmt.Sprintf("status %s", status), func(t *delaytask.Task) bool { return t.Status == status }}
}

// Where matches by a function of the test; text says in a failure's message what was wanted.
func Where(text string, ok func(task delaytask.Task) bool) Matcher {
	return Matcher{text, func(t *delaytask.Task) bool { return ok(*t) }}
}
