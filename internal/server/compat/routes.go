package compat

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/core"
	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/row"
	"github.com/delaytask/delaytask/internal/server/reqbody"
)

// command is POST /compat/topics.
func (h *Handler) command(w http.ResponseWriter, r *http.Request) (answer, error) {
	q, err := h.decode(w, r, access.Save, access.SaveHTTP, access.Work, access.Change)
	if err != nil {
		return answer{}, err
	}
	switch q.command {
	case "add":
		return h.save(r.Context(), topics, &q)
	case "pop":
		return h.pop(r.Context(), topics, &q)
	case "finish":
		return h.finish(r.Context(), topics, &q)
	case "delete":
		return h.remove(r.Context(), topics, &q)
	default:
		return answer{}, clientError(fmt.Sprintf("command is %.20q, want add, pop, finish or delete", q.command))
	}
}

// add is POST /o/add.
func (h *Handler) add(w http.ResponseWriter, r *http.Request) (answer, error) {
	q, err := h.decode(w, r, access.Save, access.SaveHTTP)
	if err != nil {
		return answer{}, err
	}
	return h.save(r.Context(), jobs, &q)
}

// get is GET /o/get.
func (h *Handler) get(_ http.ResponseWriter, r *http.Request) (answer, error) {
	return h.queried(r, h.pop)
}

// complete is GET /o/complete.
func (h *Handler) complete(_ http.ResponseWriter, r *http.Request) (answer, error) {
	return h.queried(r, h.finish)
}

func (h *Handler) queried(
	r *http.Request, do func(context.Context, protocol, *command) (answer, error),
) (answer, error) {
	q, err := decodeQuery(r.URL.RawQuery)
	if err == nil {
		err = h.checkGet(r, q.topic)
	}
	if err != nil {
		return answer{}, err
	}
	return do(r.Context(), jobs, &q)
}

// decode reads a command of a caller that has one of the verbs for some topic. Which one it needs is in the body.
func (h *Handler) decode(w http.ResponseWriter, r *http.Request, verbs ...access.Verb) (command, error) {
	if !slices.ContainsFunc(verbs, access.From(r.Context()).SomeTag) {
		w.Header().Set("Connection", "close") // otherwise the server reads what is left of the body
		return command{}, allow(r.Context(), verbs[0], "")
	}
	data, err := h.read(w, r)
	if err != nil {
		return command{}, err
	}
	return decode(data)
}

// widest is how many bytes of JSON one byte of text takes at most: \u0001.
const widest = 6

// mostBytes bounds the body of a request.
func (h *Handler) mostBytes() int64 { return widest*int64(h.cfg.BodyLimit) + reqbody.Envelope }

// held is how many bytes are held because of so many bytes of a body: those, what is made of them, and the row.
func held(body int64) int64 { return 4 * body }

// read returns the whole body of a request, within its limits of size and time.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	data, err := reqbody.Body(w, r, h.mostBytes(), reqbody.BodyWait)
	if unreadable, ok := errors.AsType[*reqbody.BodyError](err); ok {
		return nil, &refusal{unreadable.Status, unreadable.Error()}
	}
	if err == nil {
		_, err = access.Again(r.Context()) // the body may have taken a while
	}
	return data, err
}

// protocol is where the two differ.
type protocol struct {
	unit   time.Duration // of delay, TTR and wait
	global bool          // an id is unique over all topics
}

var (
	topics = protocol{unit: time.Second, global: true} // POST /compat/topics
	jobs   = protocol{unit: time.Millisecond}          // /o/…
)

const (
	// anyTag fills the place of a tag in a lookup by a global key, which ignores the tag.
	anyTag = "any"
	// taskID is the prefix of the ids that a pop assigns to tasks that were saved without an id of this protocol.
	taskID = "delaytask:"
	// longestKey is in characters.
	longestKey = 255
)

// key returns the key of an id.
func (p protocol) key(id string) (string, error) {
	prefix := ""
	if p.global {
		prefix = row.GlobalKey
	}
	switch {
	case id == "":
		return "", clientError("id is missing")
	case !utf8.ValidString(id):
		return "", clientError("id is not valid UTF-8")
	case len(prefix)+utf8.RuneCountInString(id) > longestKey:
		return "", clientError(fmt.Sprintf("id is longer than %d characters", longestKey-len(prefix)))
	case strings.HasPrefix(id, taskID),
		!p.global && (strings.HasPrefix(id, row.GlobalKey) || strings.HasPrefix(id, row.AppKey)):
		return "", clientError("id begins with " + taskID + ", " + row.GlobalKey + " or " + row.AppKey +
			", which is reserved")
	}
	return prefix + id, nil
}

// id returns the id of a task in this protocol.
func (p protocol) id(task *delaytask.Task) string {
	own, global := strings.CutPrefix(task.Key, row.GlobalKey)
	if task.Key != "" && task.App() == "" && global == p.global { // these protocols have no applications
		return own
	}
	return taskID + strconv.FormatInt(task.ID, 10)
}

// ref returns a reference to the unfinished task with the id.
func (p protocol) ref(topic, id string) (delaytask.Ref, error) {
	if digits, made := strings.CutPrefix(id, taskID); made {
		n, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || n <= 0 {
			return delaytask.Ref{}, clientError("id begins with " + taskID +
				" and goes on with something else than a pop has answered")
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
	return core.WithGlobalKey(key)
}

// span is n units of time. It returns an error when that is too long for a time.Duration.
func (p protocol) span(n int64, tooLong error) (time.Duration, error) {
	if n < 0 || n > math.MaxInt64/int64(p.unit) {
		return 0, fmt.Errorf("%w: got %d", tooLong, n)
	}
	return time.Duration(n) * p.unit, nil
}
