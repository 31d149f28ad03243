package webhook

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/delaytask/delaytask"
	"github.com/delaytask/delaytask/processor"
)

// ParseRequest reads the body of an http task, a JSON object with these fields; others are ignored:
//
//	url         what to call
//	method      get, post, put, patch or delete in any letter case; post when it is missing
//	headers     an object; its values are strings, numbers or booleans
//	body        the parameters. With get and delete: an object, whose fields are added to the URL's query (an array
//	            gives one parameter for each element, an object its JSON), or a string, which is a query of its own.
//	            With the others: a string is sent as it is (text/plain), an object as a form when the content-type is
//	            application/x-www-form-urlencoded, anything else as JSON (application/json)
//	passrule    what the answer must hold, see [Rule]; nothing when it is missing
//	passstatus  an array of the statuses that mean done; 200–299 when it is missing
//
// It returns [ErrInvalidRequest], [ErrInvalidURL] or [ErrInvalidHeader]. Whether the URL may be called is for
// [Client.CheckURL].
func ParseRequest(text []byte) (Call, error) {
	var r struct {
		URL        string          `json:"url"`
		Method     string          `json:"method"`
		Headers    json.RawMessage `json:"headers"`
		Body       json.RawMessage `json:"body"`
		PassRule   json.RawMessage `json:"passrule"`
		PassStatus []int           `json:"passstatus"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return Call{}, fmt.Errorf("%w: %s", ErrInvalidRequest, jsonReason(err))
	}
	t, err := parseURL(r.URL)
	if err != nil {
		return Call{}, err
	}
	call := Call{Method: cmp.Or(strings.ToUpper(r.Method), http.MethodPost), Statuses: r.PassStatus}
	if !validMethod(call.Method) {
		return Call{}, fmt.Errorf("%w: the method must be get, post, put, patch or delete", ErrInvalidRequest)
	}
	for _, status := range r.PassStatus {
		if !validStatus(status) {
			return Call{}, fmt.Errorf("%w: passstatus holds %d; want 200-599", ErrInvalidRequest, status)
		}
	}
	if len(r.PassRule) > 0 {
		if call.Rule, err = ParseRule(r.PassRule); err != nil {
			return Call{}, err
		}
	}
	if call.Header, err = parseHeader(r.Headers); err != nil {
		return Call{}, err
	}
	if err := call.setParameters(t.url, r.Body); err != nil {
		return Call{}, err
	}
	call.URL = t.url.String()
	if _, err := parseURL(call.URL); err != nil { // the parameters may have made it too long
		return Call{}, err
	}
	return call, nil
}

// HTTP returns the processor of the built-in tag "http": it makes the request that the task's body holds, signed when
// there are secrets. A body or URL that cannot be called fails the task at once. The task starts when its request has
// been sent: register what is returned as it is.
func (c *Client) HTTP(secrets ...Secret) processor.Processor {
	return processor.Forward(processor.Func(func(ctx context.Context, task *delaytask.Task) error {
		call, err := ParseRequest(task.Body)
		if err != nil {
			return processor.Permanent(err)
		}
		call.Secrets = secrets
		if _, err = c.Deliver(ctx, task, call); err == nil {
			return nil
		}
		_, called := errors.AsType[*CallError](err)
		if !called && (errors.Is(err, ErrBlockedURL) || errors.Is(err, ErrInvalidURL)) {
			return processor.Permanent(err) // by its text; where a name led when it was dialled may change
		}
		return err
	}))
}

func parseHeader(text json.RawMessage) (http.Header, error) {
	header := http.Header{}
	if len(text) == 0 {
		return header, nil
	}
	value, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("%w: they are not JSON", ErrInvalidHeader)
	}
	fields, ok := value.(map[string]any)
	if !ok && value != nil {
		return nil, fmt.Errorf("%w: headers must be an object", ErrInvalidHeader)
	}
	for name, field := range fields {
		value, ok := scalar(field)
		if !ok {
			return nil, fmt.Errorf("%w: want strings, numbers or booleans as values", ErrInvalidHeader)
		}
		if _, twice := header[http.CanonicalHeaderKey(name)]; twice {
			return nil, fmt.Errorf("%w: one name is given twice, in different letter case", ErrInvalidHeader)
		}
		header.Set(name, value)
	}
	return header, checkHeader(header)
}

// setParameters puts the parameters into the query or the body.
func (c *Call) setParameters(u *url.URL, parameters json.RawMessage) error {
	if len(parameters) == 0 || string(parameters) == "null" {
		return nil
	}
	value, err := decode(parameters)
	if err != nil {
		return fmt.Errorf("%w: its body is not JSON", ErrInvalidRequest)
	}
	inQuery := c.Method == http.MethodGet || c.Method == http.MethodDelete
	contentType := c.Header.Get("Content-Type")
	isForm := strings.HasPrefix(strings.ToLower(contentType), "application/x-www-form-urlencoded")
	switch value := value.(type) {
	case string:
		if inQuery {
			return addQuery(u, value)
		}
		c.setBody([]byte(value), "text/plain; charset=utf-8")
	case map[string]any:
		switch {
		case inQuery:
			return addQuery(u, form(value).Encode())
		case isForm:
			c.setBody([]byte(form(value).Encode()), contentType)
		default:
			c.setBody(parameters, "application/json")
		}
	default:
		if inQuery {
			return fmt.Errorf("%w: with %s the body must be an object or a string: it becomes the query",
				ErrInvalidRequest, c.Method)
		}
		c.setBody(parameters, "application/json")
	}
	return nil
}

func (c *Call) setBody(body []byte, contentType string) {
	c.Body = body
	if c.Header.Get("Content-Type") == "" {
		c.Header.Set("Content-Type", contentType)
	}
}

func addQuery(u *url.URL, query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("%w: its body is no query", ErrInvalidRequest)
	}
	switch encoded := values.Encode(); {
	case encoded == "":
	case u.RawQuery == "":
		u.RawQuery = encoded
	default:
		u.RawQuery += "&" + encoded
	}
	return nil
}

func form(fields map[string]any) url.Values {
	values := url.Values{}
	for name, field := range fields {
		elements, ok := field.([]any)
		if !ok {
			elements = []any{field}
		}
		for _, element := range elements {
			text, ok := scalar(element)
			if !ok {
				encoded, _ := json.Marshal(element) // it was decoded from JSON
				text = string(encoded)
			}
			values.Add(name, text)
		}
	}
	return values
}

func scalar(value any) (string, bool) {
	switch value := value.(type) {
	case string:
		return value, true
	case bool, json.Number:
		return fmt.Sprint(value), true
	default:
		return "", false
	}
}

// jsonReason returns the decoder's error without its quotes of the text.
func jsonReason(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		return fmt.Sprintf("its %s has the wrong type", wrong.Field)
	}
	return "it is not a JSON object"
}
