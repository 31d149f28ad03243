package compat

import (
	"context"
	"fmt"
	"net/http"
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
