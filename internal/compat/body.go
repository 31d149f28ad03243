package compat

import (
	"errors"
	"net/http"

	"github.com/delaytask/delaytask/internal/access"
	"github.com/delaytask/delaytask/internal/inbound"
)

// widest is how many bytes of JSON one byte of a text takes at most, as \u0001 does.
const widest = 6

// read returns the whole body of a request, within its limits of size and time.
func (h *Handler) read(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	data, err := inbound.Body(w, r, widest*int64(h.bodyLimit)+inbound.Envelope, inbound.BodyWait)
	if unreadable, ok := errors.AsType[*inbound.BodyError](err); ok {
		return nil, &refusal{unreadable.Status, unreadable.Error()}
	}
	if err == nil {
		_, err = access.Again(r.Context()) // the body may have taken a while
	}
	return data, err
}
