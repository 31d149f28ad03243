package client

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/internal/wire"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

// Codes of a receiver's answers other than 2xx.
const (
	codeUnsigned       = "unsigned"
	codeWrongSignature = "wrong_signature"
	codeTooOld         = "too_old"
	codeUnknownTag     = "unknown_tag"
	codeNotReported    = "not_reported"
)

// ServeHTTP runs the task of a call. It answers 204 when the task is done, and 202 when the task was ended, or will be,
// by its token. An invalid call gets application/problem+json with a code: 401 unsigned, wrong_signature or
// too_old; 404 unknown_tag; 413 body_too_large; 400 invalid_header or unreadable_body; 405 method_not_allowed. A result
// that could not be reported to the service gets 422, 429 or 503 not_reported.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, call *http.Request) {
	task, reg, p := r.read(w, call)
	if p != nil {
		refuse(w, p)
		return
	}
	token := delaytask.Token{ID: task.ID, Version: task.Version}
	if !r.enter() {
		r.answer(w, call, token, ending{op: opRelease, after: stopWait})
		return
	}
	defer r.running.Done()
	free, ok := r.slot(call.Context(), task.Tag)
	if !ok {
		r.answer(w, call, token, ending{op: opRelease, after: busyWait})
		return
	}
	e := r.run(call, task, reg)
	free()
	r.answer(w, call, token, e)
}

// read returns the task of a signed call, or what is wrong with the call.
func (r *Receiver) read(
	w http.ResponseWriter, call *http.Request,
) (*delaytask.Task, *processor.Registration, *wire.Problem) {
	if call.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return nil, nil, wire.NewProblem(http.StatusMethodNotAllowed, wire.CodeMethodNotAllowed, "tasks are posted")
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, call.Body, int64(r.client.bodyLimit)))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, nil, wire.NewProblem(http.StatusRequestEntityTooLarge, wire.CodeBodyTooLarge,
			"the body is longer than this receiver takes; see WithBodyLimit")
	}
	if err != nil {
		return nil, nil, wire.NewProblem(http.StatusBadRequest, wire.CodeUnreadableBody,
			"the call ended before its body did")
	}
	if err := webhook.Verify(call.Header, body, time.Now(), r.window, r.secret); err != nil {
		return nil, nil, wire.NewProblem(http.StatusUnauthorized, distrust(err), err.Error())
	}
	task, ok := taskOf(call.Header, body)
	if !ok {
		return nil, nil, wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidHeader,
			"the headers Delaytask-Tag, Delaytask-Attempt and Delaytask-Token do not name the task that was signed")
	}
	reg, known := r.registry.Lookup(task.Tag)
	if !known {
		return nil, nil, wire.NewProblem(http.StatusNotFound, codeUnknownTag,
			"this receiver has no processor for the tag")
	}
	return task, &reg, nil
}

func distrust(err error) string {
	switch {
	case errors.Is(err, webhook.ErrUnsigned):
		return codeUnsigned
	case errors.Is(err, webhook.ErrTooOld):
		return codeTooOld
	default:
		return codeWrongSignature
	}
}

// taskOf reads what the service says about the task of a call. The id is signed, so the token has to be one of that
// task.
func taskOf(h http.Header, body []byte) (*delaytask.Task, bool) {
	token, err := delaytask.ParseToken(h.Get("Delaytask-Token"))
	attempt, wrong := strconv.ParseUint(h.Get("Delaytask-Attempt"), 10, 31)
	if err != nil || wrong != nil || h.Get("Webhook-Id") != strconv.FormatInt(token.ID, 10) {
		return nil, false
	}
	expected, _ := time.Parse(time.RFC3339, h.Get("Delaytask-Expected")) // zero when it is missing
	crashes, _ := strconv.ParseUint(h.Get("Delaytask-Crashes"), 10, 31)
	task := &delaytask.Task{
		ID: token.ID, Version: token.Version, Tag: h.Get("Delaytask-Tag"), Body: body, Attempt: int(attempt),
		Crashes: int(crashes), Expected: expected,
	}
	if name := h.Get("Delaytask-Schedule"); name != "" {
		tick, _ := time.Parse(time.RFC3339, h.Get("Delaytask-Tick"))
		task.Schedule = &delaytask.ScheduledRun{Name: name, Tick: tick} // Get tells the rest
	}
	for _, name := range []string{"traceparent", "tracestate"} {
		if value := h.Get(name); value != "" {
			if task.Headers == nil {
				task.Headers = map[string]string{}
			}
			task.Headers[name] = value
		}
	}
	return task, delaytask.ValidTag(task.Tag)
}

// answer ends the call and the task. A success needs only the answer, unless the call has been broken off. Any other
// result is reported by the token: a status would lose the error's text, or spend an attempt wrongly.
func (r *Receiver) answer(w http.ResponseWriter, call *http.Request, t delaytask.Token, e ending) {
	switch {
	case e.op == opFinish && call.Context().Err() == nil:
		w.WriteHeader(http.StatusNoContent)
	case e.op == opTouch && e.after == 0, r.report(t, e):
		w.WriteHeader(http.StatusAccepted)
	default:
		r.answerShort(w, e)
	}
}

// answerShort answers with a status for a result that could not be reported. A status below 500 is about the task: the
// service then calls no other receiver in the same attempt.
func (r *Receiver) answerShort(w http.ResponseWriter, e ending) {
	after := e.after
	if e.fail.RetryAfter != nil {
		after = e.fail.RetryAfter.Std()
	}
	status := http.StatusUnprocessableEntity
	if e.op == opRelease {
		status = http.StatusServiceUnavailable
	} else if after > 0 {
		status = http.StatusTooManyRequests
	}
	if after > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
	}
	refuse(w, wire.NewProblem(status, codeNotReported,
		"the task did not succeed, and the service could not be told why"))
}

func refuse(w http.ResponseWriter, p *wire.Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // a caller that is gone needs no answer
}
