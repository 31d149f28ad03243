package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
	"github.com/delaytask/delaytask/processor/webhook"
)

// Static is a receiver of the configuration: one address for all tasks of a tag.
type Static struct {
	Tag     string
	URL     string
	Method  string      // in any letter case; default POST. With GET and DELETE the task's body becomes the query
	Header  http.Header // sent with every call
	Secrets []webhook.Secret

	Rule     webhook.Rule // what the answer must contain to mean done
	Statuses []int        // those that mean done; default 200–299
	// Later makes an answer of 202 mean that the receiver ends the task by its token. Default: 202 means done.
	Later bool

	Concurrency int // tasks at once in this process; 0: as many as the process runs
}

// Processor returns what serves the tag by calls of the client. It returns an error when the URL may not be called.
func (s Static) Processor(client *webhook.Client) (processor.Processor, error) {
	if !delaytask.ValidTag(s.Tag) {
		return nil, fmt.Errorf("receiver of %q: %w", s.Tag, delaytask.ErrInvalidTag)
	}
	if s.Method = strings.ToUpper(s.Method); s.Method == "" {
		s.Method = http.MethodPost
	}
	if err := client.CheckURL(s.URL); err != nil {
		return nil, fmt.Errorf("receiver of the tag %s: %w", s.Tag, err)
	}
	if _, err := s.call(&delaytask.Task{}); err != nil {
		return nil, fmt.Errorf("receiver of the tag %s: %w", s.Tag, err)
	}
	return processor.Forward(processor.Func(func(ctx context.Context, task *delaytask.Task) error {
		call, err := s.call(task)
		if err != nil {
			return processor.Permanent(err)
		}
		answer, err := client.Deliver(ctx, task, call)
		if err == nil && answer.Accepted && s.Later {
			return processor.HandOver(0)
		}
		return err
	})), nil
}

// Options returns the options to register the processor with.
func (s Static) Options() []processor.RegisterOption {
	return []processor.RegisterOption{processor.Concurrency(s.Concurrency)}
}

func (s Static) call(task *delaytask.Task) (webhook.Call, error) {
	call := posted(task)
	call.Method, call.URL = s.Method, s.URL
	if s.Method == http.MethodGet || s.Method == http.MethodDelete {
		var err error
		if call, err = s.query(task); err != nil {
			return call, err
		}
	}
	for name, values := range s.Header {
		call.Header[http.CanonicalHeaderKey(name)] = values
	}
	call.Secrets, call.Rule, call.Statuses = s.Secrets, s.Rule, s.Statuses
	return call, nil
}

// query converts a body as the tag http does.
func (s Static) query(task *delaytask.Task) (webhook.Call, error) {
	body := json.RawMessage(task.Body)
	switch {
	case len(body) == 0:
		body = nil
	case !json.Valid(body):
		if !utf8.Valid(body) {
			return webhook.Call{}, errors.New("push: the body is not text, which a query has to be")
		}
		body, _ = json.Marshal(string(task.Body)) // a string is always marshalled
	}
	text, err := json.Marshal(struct {
		URL    string          `json:"url"`
		Method string          `json:"method"`
		Body   json.RawMessage `json:"body,omitempty"`
	}{s.URL, s.Method, body})
	if err != nil {
		return webhook.Call{}, fmt.Errorf("make a request of the task: %w", err)
	}
	return webhook.ParseRequest(text)
}
