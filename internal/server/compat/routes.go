package compat

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/delaytask/delaytask/internal/server/access"
	"github.com/delaytask/delaytask/internal/server/reqbody"
)

// command is POST /compat/topics.
func (h *Handler) command(w http.ResponseWriter, r *http.Request) (answer, error) {
	q, err := h.decode(w, r)
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
		return answer{}, complaint(fmt.Sprintf("command is %.20q, want add, pop, finish or delete", q.command))
	}
}

// add is POST /o/add.
func (h *Handler) add(w http.ResponseWriter, r *http.Request) (answer, error) {
	q, err := h.decode(w, r)
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

func (h *Handler) queried(r *http.Request, do func(context.Context, protocol, *request) (answer, error)) (answer, error) {
	q, err := decodeQuery(r.URL.RawQuery)
	if err == nil {
		err = h.checkGet(r, q.topic)
	}
	if err != nil {
		return answer{}, err
	}
	return do(r.Context(), jobs, &q)
}

func (h *Handler) decode(w http.ResponseWriter, r *http.Request) (request, error) {
	data, err := h.read(w, r)
	if err != nil {
		return request{}, err
	}
	return decode(data)
}

// widest is how many bytes of JSON one byte of a text takes at most, as \u0001 does.
const widest = 6

// read returns the whole body of a request, within its limits of size and time.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	data, err := reqbody.Body(w, r, widest*int64(h.bodyLimit)+reqbody.Envelope, reqbody.BodyWait)
	if unreadable, ok := errors.AsType[*reqbody.BodyError](err); ok {
		return nil, &refusal{unreadable.Status, unreadable.Error()}
	}
	if err == nil {
		_, err = access.Again(r.Context()) // the body may have taken a while
	}
	return data, err
}
