package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/delaytask/delaytask/internal/operate/access"
	"github.com/delaytask/delaytask/internal/server/reqbody"
	"github.com/delaytask/delaytask/internal/wire"
)

const (
	batchPath = "/v1/tasks/batch"
	// mostBatchBytes bounds a batch: it is in memory while it is checked.
	mostBatchBytes = 32 << 20
	// deepest is how deep JSON may be nested. Readers in other languages give up at about a thousand.
	deepest = 500
)

var unreadableCodes = map[int]string{
	http.StatusRequestEntityTooLarge: wire.CodeRequestTooLarge,
	http.StatusRequestTimeout:        wire.CodeRequestTimeout,
	http.StatusBadRequest:            wire.CodeUnreadableBody,
	http.StatusServiceUnavailable:    wire.CodeOverloaded,
}

// readBodies reads the body of every request first: complete, and within its limits of size and time. It passes on
// well-formed JSON, or a batch.
func (a *API) readBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		limit, batch := int64(a.bodyLimit+reqbody.Envelope), r.URL.Path == batchPath
		if batch {
			limit = mostBatchBytes
		}
		defer a.rooms.Hold(w, r, limit, weightOf(batch))()
		body, p := a.readBody(w, r, limit, batch)
		if p != nil {
			refused(w, p)
			return
		}
		if !batch && len(body) > 0 { // the tasks of a batch are checked one by one
			done, err := a.rooms.Decode(r, body)
			if err != nil {
				refused(w, wire.NewProblem(http.StatusServiceUnavailable, wire.CodeOverloaded, err.Error()))
				return
			}
			defer done()
			if p := checkSyntax(body); p != nil {
				refused(w, p)
				return
			}
		}
		r.ContentLength = int64(len(body))
		r.Body = &readOnce{bytes.NewBuffer(body)}
		next.ServeHTTP(w, r)
	})
}

// readOnce is a body that the framework takes over: a copy of a batch would be large.
type readOnce struct{ *bytes.Buffer }

func (o *readOnce) WriteTo(w io.Writer) (int64, error) {
	to, ok := w.(*bytes.Buffer)
	if !ok || to.Len() > 0 {
		return o.Buffer.WriteTo(w)
	}
	*to, *o.Buffer = *o.Buffer, bytes.Buffer{}
	return int64(to.Len()), nil
}

func (o *readOnce) Close() error { return nil }

func (a *API) readBody(
	w http.ResponseWriter, r *http.Request, limit int64, batch bool,
) ([]byte, *wire.Problem) {
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	body, err := reqbody.Body(w, r, limit, a.bodyWait)
	if unreadable, ok := errors.AsType[*reqbody.BodyError](err); ok {
		return nil, wire.NewProblem(unreadable.Status, unreadableCodes[unreadable.Status], unreadable.Error())
	}
	if len(body) == 0 {
		return nil, nil
	}
	_, err = access.Again(r.Context()) // the body may have taken a while
	if p, ok := errors.AsType[*wire.Problem](err); ok {
		return nil, p
	}
	media, p := mediaOf(r.Header)
	r.Header.Set("Content-Type", media) // compared without case, but with it by the framework
	switch {
	case p != nil:
		return nil, p
	case media == mediaJSON, batch && media == mediaNDJSON:
		return body, nil
	default:
		return nil, wrongMedia(fmt.Sprintf("the Content-Type is %q", media))
	}
}

// checkSyntax checks one JSON value. It refuses what readers disagree about: bytes that are not UTF-8, duplicate
// members of an object, and nesting that is too deep for some.
func checkSyntax(data []byte) *wire.Problem {
	decoder := jsontext.NewDecoder(bytes.NewBuffer(data))
	for first := true; first || decoder.StackDepth() > 0; first = false {
		if _, err := decoder.ReadToken(); err != nil {
			return invalidJSON(err)
		}
		if decoder.StackDepth() > deepest {
			return wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidJSON,
				fmt.Sprintf("the JSON is nested deeper than %d", deepest))
		}
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return afterValue()
	}
	return nil
}

func afterValue() *wire.Problem {
	return wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidJSON,
		"something follows the JSON value; send one value")
}

// invalidJSON reports the position but not the text: a body may contain a secret.
func invalidJSON(err error) *wire.Problem {
	detail := "the request's body is not well-formed JSON in UTF-8"
	if syntactic, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		detail = fmt.Sprintf("%s (at byte %d)", detail, syntactic.ByteOffset)
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		detail += ": a member comes twice in its object"
	}
	return wire.NewProblem(http.StatusBadRequest, wire.CodeInvalidJSON, detail)
}
