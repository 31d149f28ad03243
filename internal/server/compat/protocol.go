package compat

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/bridge"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/processor"
)

// protocol is what the two differ in.
type protocol struct {
	unit   time.Duration // of delay, TTR and wait
	global bool          // an id is unique over all topics
}

var (
	topics = protocol{unit: time.Second, global: true} // POST /compat/topics
	jobs   = protocol{unit: time.Millisecond}          // /o/…
)

const (
	// anyTag stands where a tag must be named for a global key, which is found whatever the tag.
	anyTag = "any"
	// taskID begins the ids that a pop makes up for tasks which another way of saving gave no id of this protocol.
	taskID = "delaytask:"
	// longestKey is in characters.
	longestKey = 255
)

// key returns the key that an id stands for.
func (p protocol) key(id string) (string, error) {
	prefix := ""
	if p.global {
		prefix = row.GlobalKey
	}
	switch {
	case id == "":
		return "", complaint("id is missing")
	case !utf8.ValidString(id):
		return "", complaint("id is not valid UTF-8")
	case len(prefix)+utf8.RuneCountInString(id) > longestKey:
		return "", complaint(fmt.Sprintf("id is longer than %d characters", longestKey-len(prefix)))
	case strings.HasPrefix(id, taskID),
		!p.global && (strings.HasPrefix(id, row.GlobalKey) || strings.HasPrefix(id, row.AppKey)):
		return "", complaint("id begins with " + taskID + ", " + row.GlobalKey + " or " + row.AppKey + ", which is reserved")
	}
	return prefix + id, nil
}

// id is what a task is called in this protocol.
func (p protocol) id(task *processor.Task) string {
	own, global := strings.CutPrefix(task.Key, row.GlobalKey)
	if task.Key != "" && task.App() == "" && global == p.global { // these protocols have no applications
		return own
	}
	return taskID + strconv.FormatInt(task.ID, 10)
}

// ref names the unfinished task with the id.
func (p protocol) ref(topic, id string) (delaytask.Ref, error) {
	if digits, made := strings.CutPrefix(id, taskID); made {
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n <= 0 {
			return delaytask.Ref{}, complaint("id begins with " + taskID + " and goes on with something else than a pop has answered")
		}
		return delaytask.ID(n), nil
	}
	key, err := p.key(id)
	if err != nil {
		return delaytask.Ref{}, err
	}
	if p.global {
		topic = anyTag
	}
	return delaytask.Key(topic, key), nil
}

// keyOption saves under the key of an id.
func (p protocol) keyOption(key string) delaytask.Option {
	if !p.global {
		return delaytask.WithKey(key)
	}
	return bridge.SaveOption(key).(delaytask.Option)
}

// span is n units of time. What is too long for a time.Duration is the error.
func (p protocol) span(n int64, tooLong error) (time.Duration, error) {
	if n < 0 || n > math.MaxInt64/int64(p.unit) {
		return 0, fmt.Errorf("%w: got %d", tooLong, n)
	}
	return time.Duration(n) * p.unit, nil
}
